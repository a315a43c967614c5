/* A comment -- in a comment */ select /* here, too */ Upper('it''s -- no comment') as `Name`, -- and here
  X AS "double" FROM (values (1)) as T(X) WHERE T.X = 1;
