SELECT B.auction, B.bidder, B.price, B.channel, P.name, A.itemName
FROM bid B
JOIN person P ON B.bidder = P.id
JOIN auction A ON B.auction = A.id;
