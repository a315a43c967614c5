//! `flott rescale`: gives a running job another parallelism.

use std::collections::BTreeMap;
use std::process::ExitCode;

use comfy_table::Table;
use flott_core::{Error, Result};
use flott_local::client::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::output::ClientArgs;
use crate::suggest::did_you_mean;
use crate::{block_on, format, jobs, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott rescale 1a2b3c -p 12
  flott rescale 'word count' --vertex 1=4                          by number, as `flott info` shows it
  flott rescale 'word count' -p 2 --vertex 'Sum -> Sink: print=8'

The job goes on from where it is: no savepoint, no new processes on machines that it is on already. Refused are 0, more
than pipeline.max-parallelism, and more than there are slots; the job then runs on as it was.";

/// How many vertices an error lists.
const LISTED_MAX: usize = 20;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name
    job: String,

    /// How many subtasks each vertex gets, but for those that the job's author gave fewer than others
    #[arg(
        short,
        long,
        value_name = "N",
        required_unless_present = "vertices",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    parallelism: Option<u32>,

    /// How many subtasks one vertex gets, named by its number, its id or its name (not by an operator's uid); may be
    /// repeated
    #[arg(long = "vertex", value_name = "V=N")]
    vertices: Vec<String>,

    #[command(flatten)]
    client: ClientArgs,
}

/// A vertex of `GET /jobs/:id`.
#[derive(Clone, Debug, Deserialize)]
struct Vertex {
    id: String,
    name: String,
    parallelism: u32,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let client = args.client.client()?;
    block_on(async {
        let job = jobs::find(&client, &args.job).await?;
        let path = format!("/jobs/{job}");
        let before = vertices(&client, &path).await?;
        let body = requirements(args.parallelism, &args.vertices, &before)?;
        let spinner = terminal::spinner(format!("rescaling job {job}"));
        let began = flott_env::monotonic();
        let rescaled = client.put(&format!("{path}/resource-requirements"), &body).await;
        let took = flott_env::monotonic().saturating_sub(began);
        spinner.finish_and_clear();
        rescaled?;
        let after = vertices(&client, &path).await?;
        let text = format!("Job {job} is rescaled in {}\n\n{}", format::duration(took), table(&before, &after));
        args.client.print(
            &text,
            &json!({
                "jobid": job.to_string(),
                "duration": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "vertices": pairs(&before, &after).map(|(vertex, after)| json!({
                    "id": vertex.id,
                    "name": vertex.name,
                    "before": vertex.parallelism,
                    "after": after,
                })).collect::<Vec<Value>>(),
            }),
        )?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn vertices(client: &Client, path: &str) -> Result<Vec<Vertex>> {
    let details = client.get(path).await?;
    Vec::deserialize(&details["vertices"])
        .map_err(|error| Error::system(format!("the JobManager's list of vertices cannot be read: {error}")))
}

/// The body of the request: one number for the job as a whole, or what each vertex is to have.
fn requirements(all: Option<u32>, named: &[String], vertices: &[Vertex]) -> Result<Value> {
    if let (Some(all), []) = (all, named) {
        return Ok(json!({ "parallelism": all }));
    }
    let mut wanted = BTreeMap::new();
    for text in named {
        let (name, parallelism) = text
            .rsplit_once('=')
            .ok_or_else(|| Error::input(format!("'{text}' names no parallelism: write --vertex VERTEX=N")))?;
        let parallelism: u32 = match parallelism.trim().parse() {
            Ok(0) | Err(_) => return Err(Error::input(format!("'{text}': '{parallelism}' is not a number from 1 on"))),
            Ok(parallelism) => parallelism,
        };
        let vertex = find(name.trim(), vertices)?;
        if wanted.insert(&vertex.id, parallelism).is_some() {
            return Err(Error::input(format!("vertex '{}' is named twice", format::printable(&vertex.name))));
        }
    }
    // With both, the whole is what has as many subtasks as any: it may be that the author wanted fewer of the others.
    let most = vertices.iter().map(|vertex| vertex.parallelism).max();
    let requirements = vertices.iter().map(|vertex| {
        let of_all = all.filter(|_| Some(vertex.parallelism) == most);
        let parallelism = wanted.get(&vertex.id).copied().or(of_all).unwrap_or(vertex.parallelism);
        (vertex.id.clone(), json!({ "parallelism": { "lowerBound": 1, "upperBound": parallelism } }))
    });
    Ok(Value::Object(requirements.collect()))
}

/// The vertex with this number, id or name.
fn find<'a>(text: &str, vertices: &'a [Vertex]) -> Result<&'a Vertex> {
    if let Some(vertex) = text.parse::<usize>().ok().and_then(|number| vertices.get(number)) {
        return Ok(vertex);
    }
    let meant: Vec<&Vertex> = vertices.iter().filter(|vertex| vertex.id == text || vertex.name == text).collect();
    match meant[..] {
        [vertex] => Ok(vertex),
        [] if text.parse::<u64>().is_ok() => {
            let listed: Vec<String> = (0..)
                .zip(vertices.iter().take(LISTED_MAX))
                .map(|(number, vertex): (usize, &Vertex)| format!("{number} '{}'", format::printable(&vertex.name)))
                .collect();
            let more = match vertices.len().saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(Error::input(format!("the job has no vertex '{text}': there are {}{more}", listed.join(", "))))
        }
        [] => {
            let names = vertices.iter().map(|vertex| vertex.name.as_str());
            Err(Error::input(format!("the job has no vertex '{text}': {}", did_you_mean(text, names))))
        }
        _ => Err(Error::input(format!("the job has {} vertices '{text}': name it by its number", meant.len()))),
    }
}

fn pairs<'a>(before: &'a [Vertex], after: &'a [Vertex]) -> impl Iterator<Item = (&'a Vertex, u32)> {
    before.iter().zip(after).map(|(before, after)| (before, after.parallelism))
}

fn table(before: &[Vertex], after: &[Vertex]) -> String {
    let mut table = Table::new();
    table.set_header(["VERTEX", "NAME", "PARALLELISM"]);
    for (number, (vertex, after)) in pairs(before, after).enumerate() {
        let parallelism =
            if vertex.parallelism == after { after.to_string() } else { format!("{} → {after}", vertex.parallelism) };
        table.add_row([number.to_string(), format::printable(&vertex.name), parallelism]);
    }
    format::table(table)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn vertices(parallelism: [u32; 3]) -> Vec<Vertex> {
        let names = ["Source: lines", "Sum", "Sum"];
        let vertex = |(number, name): (usize, &str)| Vertex {
            id: format!("{number:032x}"),
            name: name.to_owned(),
            parallelism: parallelism[number],
        };
        names.into_iter().enumerate().map(vertex).collect()
    }

    fn wanted(all: Option<u32>, named: &[&str]) -> Result<Vec<u64>> {
        let named: Vec<String> = named.iter().map(|&text| text.to_owned()).collect();
        let body = requirements(all, &named, &vertices([1, 2, 2]))?;
        let upper = |vertex: &Vertex| body[&vertex.id]["parallelism"]["upperBound"].as_u64().unwrap();
        Ok(vertices([1, 2, 2]).iter().map(upper).collect())
    }

    #[test]
    fn a_vertex_has_a_number_an_id_or_a_name() {
        assert_eq!(requirements(Some(4), &[], &vertices([1, 2, 2])).unwrap(), json!({ "parallelism": 4 }));
        assert_eq!(wanted(None, &["1=4"]).unwrap(), [1, 4, 2]);
        assert_eq!(wanted(None, &[&format!("{:032x}=3", 2), "Source: lines = 2"]).unwrap(), [2, 2, 3]);
        assert_eq!(wanted(Some(8), &["2=4"]).unwrap(), [1, 8, 4], "the source has fewer than others");
    }

    #[test]
    fn what_names_no_vertex_or_number_is_refused() {
        let refused = |named: &[&str], message: &str| {
            let error = wanted(None, named).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        refused(&["1"], "names no parallelism");
        refused(&["1=0"], "'0' is not a number from 1 on");
        refused(&["1=-2"], "'-2' is not a number from 1 on");
        refused(&["source: line=2"], "no vertex 'source: line': did you mean 'Source: lines'?");
        refused(&["7=2"], "no vertex '7': there are 0 'Source: lines', 1 'Sum', 2 'Sum'");
        refused(&["Sum=2"], "2 vertices 'Sum': name it by its number");
        refused(&["1=2", "1=3"], "vertex 'Sum' is named twice");
    }

    #[test]
    fn what_has_changed_is_shown() {
        expect![[r#"
            VERTEX  NAME           PARALLELISM
            0       Source: lines  1
            1       Sum            2 → 3
            2       Sum            2"#]]
        .assert_eq(&table(&vertices([1, 2, 2]), &vertices([1, 3, 2])));
    }
}
