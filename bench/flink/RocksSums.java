import java.util.SplittableRandom;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.IndexType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBufferManager;
import org.rocksdb.WriteOptions;

/**
 * Sums for keys at random in the RocksDB that Flink ships, on one thread: what the benchmark {@code spill} does with Flott's
 * state.
 *
 * <p>Memory is shared as Flink shares it: one budget for blocks, indexes, filters and write buffers, of which write buffers
 * may take half; no log. Better than Flink's defaults: there are Bloom filters, they and indexes are partitioned, and keys and
 * values are bytes already, so no serializer runs.
 */
public final class RocksSums {
  private final RocksDB db;
  private final WriteOptions unlogged = new WriteOptions().setDisableWAL(true);
  private final byte[] key = new byte[8];
  private final byte[] value = new byte[8];

  private RocksSums(RocksDB db) {
    this.db = db;
  }

  public static void main(String[] args) throws RocksDBException {
    if (args.length != 4) {
      System.err.println("usage: RocksSums FOLDER BUDGET_BYTES KEYS SECONDS");
      System.exit(2);
    }
    long budget = Long.parseLong(args[1]);
    long keys = Long.parseLong(args[2]);
    double seconds = Double.parseDouble(args[3]);

    RocksDB.loadLibrary();
    LRUCache cache = new LRUCache(budget, -1, false, 0.1);
    BlockBasedTableConfig table =
        new BlockBasedTableConfig()
            .setBlockCache(cache)
            .setCacheIndexAndFilterBlocks(true)
            .setPinL0FilterAndIndexBlocksInCache(true)
            .setIndexType(IndexType.kTwoLevelIndexSearch)
            .setPartitionFilters(true)
            .setPinTopLevelIndexAndFilter(true)
            .setFilterPolicy(new BloomFilter(10));
    Options options =
        new Options()
            .setCreateIfMissing(true)
            .setWriteBufferManager(new WriteBufferManager(budget / 2, cache))
            .setTableFormatConfig(table);
    try (RocksDB db = RocksDB.open(options, args[0])) {
      RocksSums sums = new RocksSums(db);
      for (long key = 0; key < keys; key++) {
        sums.add(key);
      }
      // As long as it is measured twice over, so that compaction has found its pace.
      sums.addFor(seconds * 2, keys);
      System.out.printf("{\"rows_per_second\": %.0f}%n", sums.addFor(seconds, keys) / seconds);
    }
  }

  /** Adds to keys at random for so long, and says to how many. */
  private long addFor(double seconds, long keys) throws RocksDBException {
    SplittableRandom random = new SplittableRandom(keys);
    long until = System.nanoTime() + (long) (seconds * 1e9);
    long rows = 0;
    while (rows % 64 != 0 || System.nanoTime() < until) {
      add(random.nextLong(keys));
      rows++;
    }
    return rows;
  }

  private void add(long number) throws RocksDBException {
    put(key, number);
    int found = db.get(key, value);
    put(value, found == value.length ? read(value) + 1 : 1);
    db.put(unlogged, key, value);
  }

  private static void put(byte[] bytes, long number) {
    for (int at = 0; at < 8; at++) {
      bytes[at] = (byte) (number >>> (56 - 8 * at));
    }
  }

  private static long read(byte[] bytes) {
    long number = 0;
    for (byte part : bytes) {
      number = number << 8 | part & 0xff;
    }
    return number;
  }
}
