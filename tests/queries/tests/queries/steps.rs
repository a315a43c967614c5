//! Scripts of which each step is known: rows that come in do so in Flink's order, as long as rows are read one by one. Without a
//! pause, several changes of a key count as one, and the steps between are not seen.

use flott_core::Error;
use flott_queries::bed::Bed;
use flott_queries::story::Story;

use super::scripts::{compare, for_each, scripts};

#[test]
fn rows_come_in_as_in_flink() {
    let mut scripts = scripts();
    scripts.retain(|script| script.steps.is_some());
    for_each(&scripts, |script| {
        let bed = Bed::new()?;
        let mut changelog = Vec::new();
        script.answers(&[], |index, job| {
            let mut story = Story::new(&bed, job, index as u64);
            story.run_row_by_row(0)?;
            changelog = story.results().changelog();
            story.results().table()
        })?;
        let additions = changelog.iter().filter_map(|line| line.strip_prefix('+')?.split_once('\t'));
        let found: Vec<String> = additions.map(|(_, row)| row.to_owned()).collect();
        let steps = script.steps.as_ref().ok_or_else(|| Error::system("there are no steps"))?;
        compare(&found, steps)
    });
}
