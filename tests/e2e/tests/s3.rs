//! Input, output, checkpoints and savepoints in an S3 bucket, which a server in this process keeps in a folder.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use flott_e2e::{Cluster, Numbers, Setup, binary, until, visible_lines};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const LIMIT: Duration = Duration::from_secs(90);

const BUCKET: &str = "flott-e2e";
const ACCESS_KEY: &str = "an-access-key";
const SECRET_KEY: &str = "a-secret-key";

/// An S3 server with one bucket. It ends with this.
struct Server {
    port: u16,
    root: TempDir,
    _runtime: Runtime,
}

impl Server {
    fn start() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        fs::create_dir(root.path().join(BUCKET)).expect("a folder can be made");
        let mut builder = S3ServiceBuilder::new(FileSystem::new(root.path()).expect("it is a folder"));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be started");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        flott_env::spawn_on(runtime.handle(), serve(listener, service));
        Self { port, root, _runtime: runtime }
    }

    /// A cluster whose processes, and whose clients, use this server.
    fn cluster(&self, task_managers: usize, slots: u32) -> Cluster {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        Setup::new(task_managers, slots)
            .environment("AWS_ENDPOINT_URL", &endpoint)
            .environment("AWS_ENDPOINT", &endpoint)
            .environment("AWS_ALLOW_HTTP", "true")
            .environment("AWS_REGION", "us-east-1")
            .environment("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .environment("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .environment("NO_PROXY", "127.0.0.1")
            .environment("no_proxy", "127.0.0.1")
            .start()
    }

    /// Where the objects below a key lie.
    fn folder(&self, key: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(key)
    }
}

async fn serve(listener: TcpListener, service: S3Service) {
    let builder = Builder::new(TokioExecutor::new());
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let connection = builder.serve_connection(TokioIo::new(socket), service.clone());
        let connection = connection.into_owned();
        flott_env::spawn(async move {
            // Clients are killed in the middle of what they say.
            let _ = connection.await;
        });
    }
}

fn url(key: &str) -> String {
    format!("s3://{BUCKET}/{key}")
}

#[test]
fn text_is_copied_from_a_bucket_into_a_bucket() {
    let server = Server::start();
    fs::create_dir(server.folder("in")).expect("a folder can be made");
    let lines: Vec<String> = (0..5000).map(|number| format!("{number:05}")).collect();
    for (name, lines) in ["a.txt", "b.txt"].into_iter().zip(lines.chunks(2500)) {
        fs::write(server.folder("in").join(name), lines.join("\n")).expect("it can be written");
    }
    let cluster = server.cluster(1, 2);
    let (input, output) = (url("in"), url("copy"));
    let arguments = ["--case", "copy", "--input", &input, "--output", &output];
    cluster.run(&binary("e2e-job"), &["-p", "2"], &arguments).succeeded();
    assert_eq!(visible_lines(server.folder("copy")), lines);

    let missing = url("missing.txt");
    let arguments = ["--case", "copy", "--input", &missing, "--output", &output];
    cluster.run(&binary("e2e-job"), &[], &arguments).refused(&[&missing]);
}

#[test]
fn jobs_recover_from_checkpoints_and_savepoints_in_a_bucket() {
    let server = Server::start();
    let mut cluster = server.cluster(2, 1);
    let output = url("numbers");
    let folder = format!("execution.checkpointing.dir={}", url("checkpoints"));
    let engine = ["-p", "2", "-D", "execution.checkpointing.interval=500ms", "-D", &folder];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", &output]);
    cluster.wait_for_checkpoints(&job, 3);

    cluster.kill_task_manager(0);
    cluster.start_task_manager(0);
    let restored = until("a restore", LIMIT, || {
        let checkpoints = cluster.try_rest(&format!("/jobs/{job}/checkpoints"))?;
        let restored = &checkpoints["latest"]["restored"];
        if restored.is_object() { Ok(restored.clone()) } else { Err(cluster.exceptions(&job)) }
    });
    let place = restored["external_path"].as_str().unwrap_or_default();
    assert!(place.starts_with(&url("checkpoints/")), "{restored}");
    cluster.wait_for_status(&job, "RUNNING", LIMIT);
    cluster.wait_for_checkpoints(&job, restored["id"].as_u64().unwrap_or(0) + 2);

    let savepoint = cluster.stop(&job, &url("savepoints"), false);
    assert!(savepoint.starts_with(&url("savepoints/savepoint-")), "{savepoint}");
    let numbers = Numbers::read(&visible_lines(server.folder("numbers")));
    numbers.assert_no_gaps();
    let first = server.folder("checkpoints").join(&job).join("g1/chk-1/_metadata");
    until("the first checkpoint to be deleted", LIMIT, || {
        if first.exists() { Err(first.display().to_string()) } else { Ok(()) }
    });

    let count = numbers.end() + 5000;
    let arguments =
        ["--case", "numbers", "--output", &output, "--count", &count.to_string(), "--rows-per-second", "20000"];
    let job = cluster.run_job(&binary("e2e-job"), &["-p", "1", "-D", &folder, "-s", &savepoint], &arguments);
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    Numbers::read(&visible_lines(server.folder("numbers"))).assert_all_below(count);
}
