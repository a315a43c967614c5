//! Which TaskManager gives which slot: a pure function of what is free and of where state was.
//!
//! Slot sharing puts subtask `s` of every vertex into slot `s`, so a job needs as many slots as its
//! highest parallelism and a placement is one TaskManager a slot. A slot goes to the TaskManager that had
//! most of its key groups, so that they need not travel; what is left spreads out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use flott_core::ids::TaskManagerId;
use flott_core::key_group::{KeyGroup, owner_of, range_of};

/// The slots of one TaskManager, as a job sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Which TaskManager.
    pub(crate) task_manager: TaskManagerId,
    /// How many slots the job holds already.
    pub(crate) held: u32,
    /// How many slots no job holds.
    pub(crate) free: u32,
    /// How many slots it has.
    pub(crate) total: u32,
}

/// Why a job cannot be placed, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    needed: u32,
    held: u32,
    free: u32,
    total: u32,
    task_managers: usize,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, held, free, total, task_managers } = self;
        let (slots, plural) = (if *needed == 1 { "slot" } else { "slots" }, if *task_managers == 1 { "" } else { "s" });
        write!(f, "needs {needed} {slots}, ")?;
        if *held > 0 {
            write!(f, "holds {held}, ")?;
        }
        write!(f, "{free} of {total} free on {task_managers} TaskManager{plural}")
    }
}

/// How many slots a job could have.
pub(crate) fn available(offers: &[Offer]) -> u32 {
    offers.iter().fold(0, |sum, offer| sum.saturating_add(offer.held).saturating_add(offer.free))
}

/// For each slot, how many of its key groups each TaskManager had before.
pub(crate) type Affinity = Vec<BTreeMap<TaskManagerId, u32>>;

/// A vertex whose parallelism may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resized {
    /// Its parallelism in the old placement.
    pub(crate) old: u32,
    /// Its parallelism in the new one.
    pub(crate) new: u32,
    /// How many key groups it has.
    pub(crate) max: u32,
}

/// What was where in the old placement `slots`, over all vertices.
pub(crate) fn affinity(slots: &[TaskManagerId], vertices: impl IntoIterator<Item = Resized>) -> Affinity {
    let mut affinity = Affinity::new();
    for Resized { old, new, max } in vertices {
        affinity.resize(affinity.len().max(new as usize), BTreeMap::new());
        for (index, had) in (0..new).zip(&mut affinity) {
            let range = range_of(new, index, max);
            let owner = |group: u32| owner_of(group as KeyGroup, old, max);
            for old_index in owner(range.start)..=owner(range.end.saturating_sub(1)) {
                let before = range_of(old, old_index, max);
                let common = range.end.min(before.end).saturating_sub(range.start.max(before.start));
                if let Some(task_manager) = slots.get(old_index as usize).filter(|_| common > 0) {
                    *had.entry(task_manager.clone()).or_default() += common;
                }
            }
        }
    }
    affinity
}

#[derive(Clone, Copy)]
struct Left {
    held: u32,
    free: u32,
}

impl Left {
    /// Takes a slot, one that is held first. Returns whether there was one.
    fn take(&mut self) -> bool {
        let pool = if self.held > 0 { &mut self.held } else { &mut self.free };
        let has_one = *pool > 0;
        *pool -= u32::from(has_one);
        has_one
    }
}

/// A TaskManager for each slot. First the largest shares of key groups stay where they are; of equals the first slot
/// chooses first. The rest goes to where the job holds slots already, then always to the TaskManager with most slots left, so
/// that a job spreads out, and of equals to the first by id. The same arguments give the same placement.
pub(crate) fn place(
    needed: u32,
    offers: &[Offer],
    affinity: &[BTreeMap<TaskManagerId, u32>],
) -> Result<Vec<TaskManagerId>, Shortage> {
    if needed > available(offers) {
        let sum = |slots: fn(&Offer) -> u32| offers.iter().map(slots).fold(0, u32::saturating_add);
        let (held, free, total) = (sum(|offer| offer.held), sum(|offer| offer.free), sum(|offer| offer.total));
        return Err(Shortage { needed, held, free, total, task_managers: offers.len() });
    }
    let left = |offer: &Offer| Left { held: offer.held, free: offer.free };
    let mut left: BTreeMap<&TaskManagerId, Left> =
        offers.iter().map(|offer| (&offer.task_manager, left(offer))).collect();
    let mut slots: Vec<Option<&TaskManagerId>> = vec![None; needed as usize];
    let shares = (0..needed as usize)
        .zip(affinity)
        .flat_map(|(slot, had)| had.iter().map(move |(task_manager, &groups)| (Reverse(groups), slot, task_manager)));
    let mut shares: Vec<_> = shares.collect();
    shares.sort_unstable();
    for (_, slot, task_manager) in shares {
        if slots[slot].is_none() && left.get_mut(task_manager).is_some_and(Left::take) {
            slots[slot] = Some(task_manager);
        }
    }
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        // `max_by_key` prefers the last of equals, hence the reversal.
        let most = left.iter_mut().rev().max_by_key(|(_, left)| (left.held, left.held + left.free));
        if let Some((task_manager, left)) = most
            && left.take()
        {
            *slot = Some(*task_manager);
        }
    }
    Ok(slots.into_iter().flatten().cloned().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: usize) -> TaskManagerId {
        TaskManagerId(format!("tm-{number}"))
    }

    /// TaskManagers with as many slots held and free.
    fn offers_held(slots: &[(u32, u32)]) -> Vec<Offer> {
        let offer = |(number, &(held, free)): (usize, &(u32, u32))| Offer {
            task_manager: id(number),
            held,
            free,
            total: (held + free).max(2),
        };
        slots.iter().enumerate().map(offer).collect()
    }

    fn offers(free: &[u32]) -> Vec<Offer> {
        offers_held(&free.iter().map(|&free| (0, free)).collect::<Vec<_>>())
    }

    fn names(placement: &[TaskManagerId]) -> Vec<&str> {
        placement.iter().map(|id| id.0.as_str()).collect()
    }

    /// One vertex with 128 key groups.
    fn one(old: &[TaskManagerId], new: u32) -> Affinity {
        affinity(old, [Resized { old: old.len() as u32, new, max: 128 }])
    }

    #[test]
    fn slots_spread_over_the_emptiest() {
        assert_eq!(names(&place(4, &offers(&[2, 2]), &[]).unwrap()), ["tm-0", "tm-1", "tm-0", "tm-1"]);
        assert_eq!(names(&place(3, &offers(&[1, 3]), &[]).unwrap()), ["tm-1", "tm-1", "tm-0"]);
    }

    #[test]
    fn a_shortage_says_the_numbers() {
        let shortage = place(4, &offers(&[2]), &[]).unwrap_err();
        assert_eq!(shortage.to_string(), "needs 4 slots, 2 of 2 free on 1 TaskManager");
        let shortage = place(4, &offers_held(&[(1, 0), (0, 1)]), &[]).unwrap_err();
        assert_eq!(shortage.to_string(), "needs 4 slots, holds 1, 1 of 4 free on 2 TaskManagers");
        assert_eq!(place(1, &[], &[]).unwrap_err().to_string(), "needs 1 slot, 0 of 0 free on 0 TaskManagers");
    }

    #[test]
    fn slots_that_are_held_are_used_first() {
        assert_eq!(names(&place(3, &offers_held(&[(0, 4), (2, 0)]), &[]).unwrap()), ["tm-1", "tm-1", "tm-0"]);
    }

    #[test]
    fn what_a_lost_task_manager_had_goes_to_another() {
        let old = [id(0), id(1), id(0), id(1)];
        // The job holds the slots of its survivor, 0; TaskManager 2 is new.
        let mut offers = offers_held(&[(2, 0), (0, 0), (0, 2)]);
        offers.remove(1);
        assert_eq!(names(&place(4, &offers, &one(&old, 4)).unwrap()), ["tm-0", "tm-2", "tm-0", "tm-2"]);
    }

    #[test]
    fn fewer_slots_keep_most_key_groups() {
        let old = [id(0), id(0), id(1), id(1)];
        assert_eq!(names(&place(2, &offers_held(&[(2, 0), (2, 0)]), &one(&old, 2)).unwrap()), ["tm-0", "tm-1"]);
        // The second of three slots has 21 groups of old slot 1 and 22 of old slot 2.
        let placement = place(3, &offers_held(&[(2, 0), (2, 0)]), &one(&old, 3)).unwrap();
        assert_eq!(names(&placement), ["tm-0", "tm-1", "tm-1"]);
    }

    #[test]
    fn more_slots_keep_most_key_groups() {
        let old = [id(0), id(1)];
        assert_eq!(
            names(&place(4, &offers_held(&[(1, 0), (1, 0), (0, 2)]), &one(&old, 4)).unwrap()),
            ["tm-0", "tm-2", "tm-1", "tm-2"]
        );
        assert_eq!(
            names(&place(4, &offers_held(&[(1, 1), (1, 1)]), &one(&old, 4)).unwrap()),
            ["tm-0", "tm-0", "tm-1", "tm-1"]
        );
    }

    #[test]
    fn all_vertices_count() {
        let old = [id(0), id(1)];
        let affinity = affinity(&old, [Resized { old: 2, new: 2, max: 128 }, Resized { old: 1, new: 1, max: 10 }]);
        assert_eq!(affinity, [BTreeMap::from([(id(0), 74)]), BTreeMap::from([(id(1), 64)])]);
    }

    /// An old placement on five TaskManagers, and what is free beside it.
    fn scene() -> impl Strategy<Value = (Vec<TaskManagerId>, Vec<u32>)> {
        (prop::collection::vec((0usize..5).prop_map(id), 1..20), prop::collection::vec(0u32..4, 5))
    }

    /// What a job that holds the slots of `old` is offered by the TaskManagers that live.
    fn beside(old: &[TaskManagerId], free: &[u32], is_alive: impl Fn(usize) -> bool) -> Vec<Offer> {
        let held = |number: usize| old.iter().filter(|task_manager| **task_manager == id(number)).count() as u32;
        let mut offers = offers_held(&(0..5).map(|number| (held(number), free[number])).collect::<Vec<_>>());
        offers.retain(|offer| (0..5).any(|number| is_alive(number) && offer.task_manager == id(number)));
        offers
    }

    proptest! {
        #[test]
        fn no_slot_is_given_twice((old, free) in scene(), needed in 0u32..40, alive in 0u32..32) {
            let offers = beside(&old, &free, |number| alive & (1 << number) != 0);
            match place(needed, &offers, &one(&old, needed)) {
                Ok(slots) => {
                    prop_assert_eq!(slots.len(), needed as usize);
                    let mut used: BTreeMap<TaskManagerId, u32> = BTreeMap::new();
                    for slot in slots {
                        *used.entry(slot).or_default() += 1;
                    }
                    for offer in &offers {
                        prop_assert!(used.remove(&offer.task_manager).unwrap_or(0) <= offer.held + offer.free);
                    }
                    prop_assert!(used.is_empty(), "{:?} offered nothing", used);
                }
                Err(_) => prop_assert!(available(&offers) < needed),
            }
        }

        #[test]
        fn an_unchanged_parallelism_changes_no_place((old, free) in scene()) {
            let needed = old.len() as u32;
            prop_assert_eq!(place(needed, &beside(&old, &free, |_| true), &one(&old, needed)).unwrap(), old);
        }

        #[test]
        fn survivors_keep_their_slots((old, free) in scene(), lost in 0usize..5) {
            let needed = old.len() as u32;
            if let Ok(new) = place(needed, &beside(&old, &free, |number| number != lost), &one(&old, needed)) {
                for (old, new) in old.iter().zip(&new) {
                    prop_assert!(*old == id(lost) || old == new, "{} went to {}", old, new);
                }
            }
        }

        #[test]
        fn affinity_counts_every_key_group_once((old, _) in scene(), new in 1u32..40) {
            let affinity = one(&old, new);
            prop_assert_eq!(affinity.iter().flat_map(BTreeMap::values).sum::<u32>(), 128);
        }
    }
}
