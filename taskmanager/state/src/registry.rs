//! The states of a user's function: declared by name when it opens, reached through its context.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use flott_core::key_group::KeyGroupRange;
use flott_core::{Data, Error, Result};

use crate::budget::StateBackend;
use crate::snapshot::Checkpointed;
use crate::table::KeyedTable;

/// Something that has a current key, such as the context of a `process` call.
pub trait Keyed<K> {
    /// The states of the operator, the current key, and its stable hash.
    fn keyed(&mut self) -> (&mut KeyedStates<K>, &K, u64);
}

/// The states that a function declared.
pub struct KeyedStates<K> {
    range: KeyGroupRange,
    max_parallelism: u32,
    backend: StateBackend,
    tables: Vec<Box<dyn AnyTable>>,
    key: PhantomData<K>,
}

trait AnyTable: Checkpointed {
    fn as_any(&mut self) -> &mut dyn Any;
    fn as_checkpointed(&mut self) -> &mut dyn Checkpointed;
}

impl<K: Data + Eq, V: Data> AnyTable for KeyedTable<K, (), V> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn as_checkpointed(&mut self) -> &mut dyn Checkpointed {
        self
    }
}

impl<K: Data + Eq> KeyedStates<K> {
    /// No states yet, for the key groups of `range`. They will keep to `backend`.
    pub fn new(range: KeyGroupRange, max_parallelism: u32, backend: &StateBackend) -> Self {
        Self { range, max_parallelism, backend: backend.clone(), tables: Vec::new(), key: PhantomData }
    }

    /// Declares a state of one value a key.
    pub fn value<V: Data>(&mut self, name: &str) -> Result<ValueState<V>> {
        Ok(ValueState { table: self.declare::<V>(name)?, value: PhantomData })
    }

    /// Declares a state of a list a key.
    pub fn list<V: Data>(&mut self, name: &str) -> Result<ListState<V>> {
        Ok(ListState { table: self.declare::<Vec<V>>(name)?, value: PhantomData })
    }

    /// Declares a state of a map a key. Its entries are ordered, so that a job is deterministic.
    pub fn map<MK: Data + Ord, MV: Data>(&mut self, name: &str) -> Result<MapState<MK, MV>> {
        Ok(MapState { table: self.declare::<BTreeMap<MK, MV>>(name)?, entry: PhantomData })
    }

    fn declare<V: Data>(&mut self, name: &str) -> Result<usize> {
        if self.tables.iter().any(|table| table.name() == name) {
            return Err(Error::input(format!("state '{name}' is declared twice: names are unique in an operator")));
        }
        let table: KeyedTable<K, (), V> =
            KeyedTable::with_backend(name, self.range, self.max_parallelism, &self.backend);
        self.tables.push(Box::new(table));
        Ok(self.tables.len() - 1)
    }

    /// The declared states, for snapshots.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut dyn Checkpointed) -> Result<()>) -> Result<()> {
        self.tables.iter_mut().try_for_each(|table| visit(table.as_checkpointed()))
    }

    fn table<V: Data>(&mut self, index: usize) -> &mut KeyedTable<K, (), V> {
        self.tables[index].as_any().downcast_mut().expect("a handle belongs to the function that declared it")
    }
}

/// One value a key. Declare it with [`KeyedStates::value`] when the function opens.
#[derive(Clone, Debug)]
pub struct ValueState<V> {
    table: usize,
    value: PhantomData<fn() -> V>,
}

impl<V: Data> ValueState<V> {
    /// The current key's value.
    pub fn get<'a, K: Data + Eq>(&self, cx: &'a mut impl Keyed<K>) -> Option<&'a V> {
        let (states, key, hash) = cx.keyed();
        states.table::<V>(self.table).get(hash, key, &())
    }

    /// Sets the current key's value.
    pub fn set<K: Data + Eq>(&self, cx: &mut impl Keyed<K>, value: V) {
        let (states, key, hash) = cx.keyed();
        states.table::<V>(self.table).put(hash, key, (), value);
    }

    /// The current key's value, to be changed in place; `make` provides it if there is none.
    pub fn update<'a, K: Data + Eq>(&self, cx: &'a mut impl Keyed<K>, make: impl FnOnce() -> V) -> &'a mut V {
        let (states, key, hash) = cx.keyed();
        states.table::<V>(self.table).get_or_insert_with(hash, key, (), make)
    }

    /// Removes the current key's value and returns it.
    pub fn clear<K: Data + Eq>(&self, cx: &mut impl Keyed<K>) -> Option<V> {
        let (states, key, hash) = cx.keyed();
        states.table::<V>(self.table).remove(hash, key, &())
    }
}

/// A list a key. Declare it with [`KeyedStates::list`] when the function opens.
#[derive(Clone, Debug)]
pub struct ListState<V> {
    table: usize,
    value: PhantomData<fn() -> V>,
}

impl<V: Data> ListState<V> {
    /// The current key's list; empty if there is none.
    pub fn get<'a, K: Data + Eq>(&self, cx: &'a mut impl Keyed<K>) -> &'a [V] {
        let (states, key, hash) = cx.keyed();
        states.table::<Vec<V>>(self.table).get(hash, key, &()).map_or(&[], Vec::as_slice)
    }

    /// Appends to the current key's list.
    pub fn add<K: Data + Eq>(&self, cx: &mut impl Keyed<K>, value: V) {
        let (states, key, hash) = cx.keyed();
        states.table::<Vec<V>>(self.table).get_or_insert_with(hash, key, (), Vec::new).push(value);
    }

    /// Removes the current key's list and returns it.
    pub fn clear<K: Data + Eq>(&self, cx: &mut impl Keyed<K>) -> Vec<V> {
        let (states, key, hash) = cx.keyed();
        states.table::<Vec<V>>(self.table).remove(hash, key, &()).unwrap_or_default()
    }
}

/// A map a key. Declare it with [`KeyedStates::map`] when the function opens.
#[derive(Clone, Debug)]
pub struct MapState<MK, MV> {
    table: usize,
    entry: PhantomData<fn() -> (MK, MV)>,
}

impl<MK: Data + Ord, MV: Data> MapState<MK, MV> {
    /// A value of the current key's map.
    pub fn get<'a, K: Data + Eq>(&self, cx: &'a mut impl Keyed<K>, map_key: &MK) -> Option<&'a MV> {
        let (states, key, hash) = cx.keyed();
        states.table::<BTreeMap<MK, MV>>(self.table).get(hash, key, &())?.get(map_key)
    }

    /// Puts a value into the current key's map.
    pub fn put<K: Data + Eq>(&self, cx: &mut impl Keyed<K>, map_key: MK, value: MV) {
        let (states, key, hash) = cx.keyed();
        let table = states.table::<BTreeMap<MK, MV>>(self.table);
        table.get_or_insert_with(hash, key, (), BTreeMap::new).insert(map_key, value);
    }

    /// Removes a value from the current key's map and returns it.
    pub fn remove<K: Data + Eq>(&self, cx: &mut impl Keyed<K>, map_key: &MK) -> Option<MV> {
        let (states, key, hash) = cx.keyed();
        let table = states.table::<BTreeMap<MK, MV>>(self.table);
        let map = table.get_mut(hash, key, &())?;
        let value = map.remove(map_key);
        if map.is_empty() {
            table.remove(hash, key, &());
        }
        value
    }

    /// The entries of the current key's map, in the order of their keys.
    pub fn entries<'a, K: Data + Eq>(&self, cx: &'a mut impl Keyed<K>) -> impl Iterator<Item = (&'a MK, &'a MV)>
    where
        MK: 'a,
        MV: 'a,
    {
        let (states, key, hash) = cx.keyed();
        states.table::<BTreeMap<MK, MV>>(self.table).get(hash, key, &()).into_iter().flatten()
    }

    /// Removes the current key's map.
    pub fn clear<K: Data + Eq>(&self, cx: &mut impl Keyed<K>) {
        let (states, key, hash) = cx.keyed();
        states.table::<BTreeMap<MK, MV>>(self.table).remove(hash, key, &());
    }
}
