//! Which TaskManager gives which slot: a pure function of what is free.
//!
//! Slot sharing puts subtask `s` of every vertex into slot `s`, so a job needs as many slots as its
//! highest parallelism and a placement is one TaskManager a slot.

use std::fmt;

use flott_core::ids::TaskManagerId;

/// The slots of one TaskManager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Which TaskManager.
    pub(crate) task_manager: TaskManagerId,
    /// How many slots no job holds.
    pub(crate) free: u32,
    /// How many slots it has.
    pub(crate) total: u32,
}

/// Why a job cannot be placed, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    needed: u32,
    free: u32,
    total: u32,
    task_managers: usize,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, free, total, task_managers } = self;
        let (slots, plural) = (if *needed == 1 { "slot" } else { "slots" }, if *task_managers == 1 { "" } else { "s" });
        write!(f, "needs {needed} {slots}, {free} of {total} free on {task_managers} TaskManager{plural}")
    }
}

/// A TaskManager for each slot: always the one with most slots left, so that a job spreads out, and
/// of equals the first by id, so that the same offers give the same placement.
pub(crate) fn place(needed: u32, offers: &[Offer]) -> Result<Vec<TaskManagerId>, Shortage> {
    let sum = |slots: fn(&Offer) -> u32| offers.iter().map(slots).fold(0, u32::saturating_add);
    let free = sum(|offer| offer.free);
    if needed > free {
        let total = sum(|offer| offer.total);
        return Err(Shortage { needed, free, total, task_managers: offers.len() });
    }
    let mut left: Vec<(u32, &TaskManagerId)> = offers.iter().map(|offer| (offer.free, &offer.task_manager)).collect();
    left.sort_by_key(|&(_, id)| id);
    let mut slots = Vec::with_capacity(needed as usize);
    for _ in 0..needed {
        // `max_by_key` prefers the last of equals, hence the reversal.
        let Some(most) = left.iter_mut().rev().max_by_key(|(free, _)| *free) else { break };
        most.0 -= 1;
        slots.push(most.1.clone());
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn offers(free: &[u32]) -> Vec<Offer> {
        let offer = |(i, &free): (usize, &u32)| Offer {
            task_manager: TaskManagerId(format!("tm-{i}")),
            free,
            total: 2.max(free),
        };
        free.iter().enumerate().map(offer).collect()
    }

    fn names(placement: Vec<TaskManagerId>) -> Vec<String> {
        placement.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn slots_spread_over_the_emptiest() {
        assert_eq!(names(place(4, &offers(&[2, 2])).unwrap()), ["tm-0", "tm-1", "tm-0", "tm-1"]);
        assert_eq!(names(place(3, &offers(&[1, 3])).unwrap()), ["tm-1", "tm-1", "tm-0"]);
    }

    #[test]
    fn a_shortage_says_the_numbers() {
        let shortage = place(4, &offers(&[2])).unwrap_err();
        assert_eq!(shortage.to_string(), "needs 4 slots, 2 of 2 free on 1 TaskManager");
        assert_eq!(place(1, &[]).unwrap_err().to_string(), "needs 1 slot, 0 of 0 free on 0 TaskManagers");
    }

    proptest! {
        #[test]
        fn no_slot_is_given_twice(free in prop::collection::vec(0u32..5, 0..6), needed in 0u32..20) {
            let offers = offers(&free);
            match place(needed, &offers) {
                Ok(slots) => {
                    prop_assert_eq!(slots.len(), needed as usize);
                    let mut used: BTreeMap<TaskManagerId, u32> = BTreeMap::new();
                    for slot in slots {
                        *used.entry(slot).or_default() += 1;
                    }
                    for offer in &offers {
                        prop_assert!(used.get(&offer.task_manager).copied().unwrap_or(0) <= offer.free);
                    }
                }
                Err(_) => prop_assert!(free.iter().sum::<u32>() < needed),
            }
        }
    }
}
