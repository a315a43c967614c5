//! What REST refuses, and how.

use flott_proto::artifact::to_hex;
use reqwest::header::{HOST, ORIGIN};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Setup, answer, spec};
use crate::elf;

const UNKNOWN_JOB: &str = "/jobs/00000000000000000000000000000000";

fn check(answer: (StatusCode, Value), status: StatusCode, message: &str) {
    let (actual, body) = answer;
    assert_eq!(actual, status, "{body}");
    assert!(body["errors"][0].as_str().is_some_and(|text| text.contains(message)), "{body}");
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let setup = Setup::start().await;
    let get = async |path: &str| answer(setup.request(Method::GET, path)).await;
    check(get("/nothing").await, StatusCode::NOT_FOUND, "/nothing");
    check(get(UNKNOWN_JOB).await, StatusCode::NOT_FOUND, "not found");
    check(get(&format!("{UNKNOWN_JOB}/checkpoints")).await, StatusCode::NOT_FOUND, "not found");
    check(get(&format!("{UNKNOWN_JOB}/savepoints/abc")).await, StatusCode::NOT_FOUND, "no operation 'abc'");
    check(get("/taskmanagers/tm-9").await, StatusCode::NOT_FOUND, "tm-9");
    check(get("/jobs/xyz").await, StatusCode::BAD_REQUEST, "'xyz' is not a JobId");
    check(get(&format!("/artifacts/{}", "0".repeat(64))).await, StatusCode::NOT_FOUND, "no job binary");
    check(get("/artifacts/..%2Fx").await, StatusCode::BAD_REQUEST, "not a SHA-256");
    let delete = answer(setup.request(Method::DELETE, "/jobs")).await;
    check(delete, StatusCode::METHOD_NOT_ALLOWED, "/jobs");
    let cancel = answer(setup.request(Method::PATCH, UNKNOWN_JOB)).await;
    check(cancel, StatusCode::NOT_FOUND, "not found");
    let mode = answer(setup.request(Method::PATCH, &format!("{UNKNOWN_JOB}?mode=stop"))).await;
    check(mode, StatusCode::BAD_REQUEST, "mode 'stop'");
    let unless = answer(setup.request(Method::PATCH, &format!("{UNKNOWN_JOB}?unless=later"))).await;
    check(unless, StatusCode::BAD_REQUEST, "unless 'later'");
}

#[tokio::test]
async fn binaries_that_cannot_run_are_refused() {
    let setup = Setup::start().await;
    let put = async |content: Vec<u8>, sha256: Option<&str>| {
        let sha256 = sha256.map_or_else(|| to_hex(&Sha256::digest(&content)), str::to_owned);
        answer(setup.request(Method::PUT, &format!("/artifacts/{sha256}")).body(content)).await
    };
    let script = put(b"#!/usr/bin/env python3\nprint('job')\n".to_vec(), None).await;
    check(script, StatusCode::BAD_REQUEST, "not an ELF executable but a script");
    check(put(Vec::new(), None).await, StatusCode::BAD_REQUEST, "not an ELF executable");
    let mut foreign = elf::example();
    // The machine number; 8 is MIPS.
    foreign[18..20].copy_from_slice(&[8, 0]);
    check(put(foreign, None).await, StatusCode::BAD_REQUEST, "binary for another machine");
    let mut altered = elf::example();
    let announced = to_hex(&Sha256::digest(&altered));
    altered[1000] ^= 1;
    check(put(altered, Some(&announced)).await, StatusCode::BAD_REQUEST, "announced with SHA-256");
    check(put(b"abc".to_vec(), Some("abc")).await, StatusCode::BAD_REQUEST, "'abc' is not a SHA-256");
}

#[tokio::test]
async fn jobs_that_cannot_run_are_refused() {
    let setup = Setup::start().await;
    let post = async |body: Value| setup.post("/jobs", body).await;
    check(post(json!({ "graph": 1 })).await, StatusCode::BAD_REQUEST, "not a job description");
    let without = serde_json::to_value(spec(None)).unwrap();
    check(post(without.clone()).await, StatusCode::BAD_REQUEST, "names no binary");

    let missing = "0".repeat(64);
    let mut body = serde_json::to_value(spec(Some(missing.clone()))).unwrap();
    check(post(body.clone()).await, StatusCode::BAD_REQUEST, &format!("{missing} has not been uploaded"));
    body["graph"]["config"] = json!({ "execution.checkpointing.intervall": "1 s" });
    check(post(body.clone()).await, StatusCode::BAD_REQUEST, "did you mean 'execution.checkpointing.interval'");
    body["graph"] = without["graph"].clone();
    body["graph"]["edges"][0]["source"] = json!(1);
    check(post(body).await, StatusCode::BAD_REQUEST, "edge 0 leads from vertex 1 to vertex 1");

    let content = elf::example();
    let sha256 = to_hex(&Sha256::digest(&content));
    let upload = setup.request(Method::PUT, &format!("/artifacts/{sha256}")).body(content);
    assert_eq!(answer(upload).await.0, StatusCode::CREATED);
    let mut body = serde_json::to_value(spec(Some(sha256))).unwrap();
    body["graph"]["vertices"][1]["parallelism"] = json!(1000);
    check(post(body.clone()).await, StatusCode::BAD_REQUEST, "parallelism");
    body["graph"] = without["graph"].clone();
    for (savepoint, message) in [
        ("savepoints/1", "neither a URL nor an absolute path"),
        ("http://host/1", "scheme"),
        ("/nowhere/savepoint-1", "cannot start from savepoint '/nowhere/savepoint-1'"),
    ] {
        body["savepoint"] = json!(savepoint);
        check(post(body.clone()).await, StatusCode::BAD_REQUEST, message);
    }
    assert_eq!(setup.get("/jobs").await, json!({ "jobs": [] }), "none was accepted");
}

#[tokio::test]
async fn requests_in_the_name_of_others_are_refused() {
    let setup = Setup::start().await;
    let host = setup.request(Method::GET, "/jobs").header(HOST, "evil.example:8081");
    check(answer(host).await, StatusCode::FORBIDDEN, "evil.example");
    let origin = setup.request(Method::POST, "/jobs").header(ORIGIN, "http://evil.example").body("{}");
    check(answer(origin).await, StatusCode::FORBIDDEN, "evil.example");
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let setup = Setup::start().await;
    let body = "x".repeat((1 << 20) + 1);
    let request = setup.request(Method::POST, &format!("{UNKNOWN_JOB}/stop")).body(body);
    check(answer(request).await, StatusCode::PAYLOAD_TOO_LARGE, "limit");
}
