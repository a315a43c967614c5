import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Submits SQL statements to a running Flink cluster: {@code java Submit.java KEY=VALUE... -- STATEMENT...}. */
public class Submit {
  public static void main(String[] arguments) {
    Configuration options = new Configuration();
    int next = 0;
    for (; !arguments[next].equals("--"); next++) {
      String[] pair = arguments[next].split("=", 2);
      options.setString(pair[0], pair[1]);
    }
    TableEnvironment env =
        TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(options).build());
    for (next++; next < arguments.length; next++) {
      // Of an INSERT this is the submission; the job runs on.
      env.executeSql(arguments[next]);
    }
  }
}
