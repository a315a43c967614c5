SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(pt), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
