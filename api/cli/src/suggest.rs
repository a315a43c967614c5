//! What someone may have meant by a name that does not exist.

use crate::format;

/// How many names are listed.
const LISTED_MAX: usize = 10;

/// The end of an error about an unknown name: the nearest known one, or else the known ones.
pub(crate) fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let lower = unknown.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let nearest = known.iter().map(|name| (distance(name), *name)).min();
    match nearest {
        None => "there are none".to_owned(),
        Some((distance, name)) if distance <= name.chars().count() / 2 => {
            format!("did you mean '{}'?", format::printable(name))
        }
        Some(_) => {
            let listed: Vec<String> =
                known.iter().take(LISTED_MAX).map(|name| format!("'{}'", format::printable(name))).collect();
            let more = if known.len() > LISTED_MAX {
                format!(" and {} more", known.len() - LISTED_MAX)
            } else {
                String::new()
            };
            format!("there are {}{more}", listed.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let known = ["counts", "totals"];
        assert_eq!(did_you_mean("count", known), "did you mean 'counts'?");
        assert_eq!(did_you_mean("TOTALS", known), "did you mean 'totals'?");
        assert_eq!(did_you_mean("x", known), "there are 'counts', 'totals'");
        assert_eq!(did_you_mean("x", []), "there are none");
        let many: Vec<String> = (0..12).map(|number| format!("state-number-{number}")).collect();
        assert!(did_you_mean("x", many.iter().map(String::as_str)).ends_with("'state-number-9' and 2 more"));
    }
}
