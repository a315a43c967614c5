import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Counts words in the text files of a folder, and emits every update, as the benchmark's Flott job does.
 *
 * <p>Flink reads each text file in one subtask: give it at least as many files as subtasks. A word is a run of ASCII
 * letters and digits, in lower case. Set up for speed: object reuse, heap state, no checkpoints, one process.
 */
public final class WordCount {
  public static void main(String[] args) throws Exception {
    int parallelism = Integer.parseInt(args[1]);

    Configuration conf = new Configuration();
    conf.setString("rest.bind-port", "0");
    conf.setString("pipeline.object-reuse", "true");
    conf.setString("state.backend.type", "hashmap");
    conf.setString("taskmanager.memory.network.min", "128m");
    conf.setString("taskmanager.memory.network.max", "128m");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, conf);
    env.setRuntimeMode(RuntimeExecutionMode.STREAMING);

    FileSource<String> lines =
        FileSource.forRecordStreamFormat(new TextLineInputFormat(), Path.fromLocalFile(new File(args[0]))).build();
    env.fromSource(lines, WatermarkStrategy.noWatermarks(), "lines")
        .flatMap(new Words())
        .keyBy(word -> word.f0, Types.STRING)
        .sum(1)
        .map(new CountUpdates())
        .returns(Types.TUPLE(Types.STRING, Types.LONG))
        .sinkTo(new DiscardingSink<>());

    long start = System.nanoTime();
    JobExecutionResult result = env.execute("wordcount");
    double jobSeconds = (System.nanoTime() - start) / 1e9;
    double processSeconds = (System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime()) / 1e3;
    System.out.printf(
        Locale.ROOT,
        "{\"job_seconds\": %.3f, \"process_seconds\": %.3f, \"words\": %d, \"distinct\": %d}%n",
        jobSeconds,
        processSeconds,
        result.<Long>getAccumulatorResult("words"),
        result.<Long>getAccumulatorResult("distinct"));
    System.exit(0);
  }

  /** Splits lines into words; one tuple is reused for all of them. */
  private static final class Words extends RichFlatMapFunction<String, Tuple2<String, Long>> {
    private final Tuple2<String, Long> word = new Tuple2<>("", 1L);
    private char[] lower = new char[64];

    @Override
    public void flatMap(String line, Collector<Tuple2<String, Long>> out) {
      int length = 0;
      for (int i = 0; i < line.length(); i++) {
        char c = line.charAt(i);
        if (c >= 'A' && c <= 'Z') {
          c += 'a' - 'A';
        } else if (!(c >= 'a' && c <= 'z' || c >= '0' && c <= '9')) {
          emit(length, out);
          length = 0;
          continue;
        }
        if (length == lower.length) {
          lower = Arrays.copyOf(lower, 2 * length);
        }
        lower[length++] = c;
      }
      emit(length, out);
    }

    private void emit(int length, Collector<Tuple2<String, Long>> out) {
      if (length > 0) {
        word.f0 = new String(lower, 0, length);
        word.f1 = 1L;
        out.collect(word);
      }
    }
  }

  /** Counts what passes: how many updates, and how many of them were a word's first. */
  private static final class CountUpdates extends RichMapFunction<Tuple2<String, Long>, Tuple2<String, Long>> {
    private final LongCounter words = new LongCounter();
    private final LongCounter distinct = new LongCounter();

    @Override
    public void open(OpenContext context) {
      getRuntimeContext().addAccumulator("words", words);
      getRuntimeContext().addAccumulator("distinct", distinct);
    }

    @Override
    public Tuple2<String, Long> map(Tuple2<String, Long> update) {
      words.add(1L);
      if (update.f1 == 1L) {
        distinct.add(1L);
      }
      return update;
    }
  }
}
