import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs the statements of a file, which a line of a single semicolon ends each, in one process and at parallelism 1, and
 * prints a JSON object a line:
 *
 * <ul>
 *   <li>of {@code EXPLAIN} the milliseconds that planning took,
 *   <li>of {@code CREATE TABLE … AS} and {@code INSERT} the seconds from planning to the end of the job,
 *   <li>of {@code SELECT} the number that its last row has.
 * </ul>
 */
public class Sql {
  public static void main(String[] arguments) throws Exception {
    Configuration options = new Configuration();
    options.setString("parallelism.default", "1");
    options.setString("pipeline.object-reuse", "true");
    options.setString("table.local-time-zone", "UTC");
    options.setString("taskmanager.memory.managed.size", "512m");
    options.setString("taskmanager.memory.network.min", "128m");
    options.setString("taskmanager.memory.network.max", "128m");
    TableEnvironment env =
        TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(options).build());
    for (String statement : Files.readString(Path.of(arguments[0])).split("\n;\n")) {
      String head = statement.stripLeading();
      if (head.isEmpty()) {
        continue;
      }
      long start = System.nanoTime();
      TableResult result = env.executeSql(statement);
      if (head.startsWith("EXPLAIN")) {
        result.collect().close();
        System.out.printf("{\"planning_ms\": %.1f}%n", (System.nanoTime() - start) / 1e6);
      } else if (head.startsWith("SELECT")) {
        Row last = null;
        try (CloseableIterator<Row> rows = result.collect()) {
          while (rows.hasNext()) {
            last = rows.next();
          }
        }
        System.out.printf("{\"last\": %s}%n", last == null ? 0 : last.getField(0));
      } else if (head.startsWith("INSERT") || head.contains("\nAS ")) {
        result.await();
        System.out.printf("{\"seconds\": %.3f}%n", (System.nanoTime() - start) / 1e9);
      }
    }
    // Threads of the embedded cluster would keep the process.
    System.exit(0);
  }
}
