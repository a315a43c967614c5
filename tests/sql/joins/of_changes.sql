-- Both sides are updated.
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');
SELECT a.owner, b.branch, b.n, a.amount FROM accounts a
LEFT JOIN (SELECT branch, COUNT(*) AS n FROM accounts GROUP BY branch) b ON a.branch = b.branch AND b.n > 1;
