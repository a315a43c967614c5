//! Catalogs and databases.

use std::collections::BTreeMap;
use std::sync::Arc;

use flott_core::{Error, Result};

use super::{Implementations, Path, Relation, Table, UserFunction, View, exists, suggestion, unknown};
use crate::parse::{CreateView, Name, Options};

/// All that names mean in a session.
#[derive(Clone, Debug)]
pub struct Catalog {
    catalogs: BTreeMap<String, Space>,
    /// What only this session knows. It hides what has the same path.
    temporary: BTreeMap<Path, Relation>,
    current: (String, String),
    implementations: Implementations,
    /// Functions by their names in lower case: they are known in every database.
    functions: BTreeMap<String, UserFunction>,
}

#[derive(Clone, Debug, Default)]
struct Space {
    options: Options,
    databases: BTreeMap<String, Database>,
}

#[derive(Clone, Debug, Default)]
struct Database {
    relations: BTreeMap<String, Relation>,
}

impl Default for Catalog {
    fn default() -> Self {
        let space = Space {
            options: Options::from([("type".to_owned(), "generic_in_memory".to_owned())]),
            databases: BTreeMap::from([("default_database".to_owned(), Database::default())]),
        };
        Self {
            catalogs: BTreeMap::from([("default_catalog".to_owned(), space)]),
            temporary: BTreeMap::new(),
            current: ("default_catalog".to_owned(), "default_database".to_owned()),
            implementations: Implementations::new(),
            functions: BTreeMap::new(),
        }
    }
}

impl Catalog {
    /// The catalog and database in which names without them are.
    pub fn current(&self) -> (&str, &str) {
        (&self.current.0, &self.current.1)
    }

    /// The same, with others in use: as they were when a view was created.
    pub fn within(&self, catalog: &str, database: &str) -> Self {
        Self { current: (catalog.to_owned(), database.to_owned()), ..self.clone() }
    }

    /// Where a name of one to three parts is.
    pub fn resolve(&self, parts: &[String]) -> Result<Path> {
        let (catalog, database) = (self.current.0.clone(), self.current.1.clone());
        Ok(match parts {
            [name] => Path { catalog, database, name: name.clone() },
            [database, name] => Path { catalog, database: database.clone(), name: name.clone() },
            [catalog, database, name] => {
                Path { catalog: catalog.clone(), database: database.clone(), name: name.clone() }
            }
            _ => return Err(Error::input(format!("'{}' is no name: it has {} parts", parts.join("."), parts.len()))),
        })
    }

    /// What is at a path.
    ///
    /// # Errors
    /// Nothing; the message has the nearest name.
    pub fn relation(&self, path: &Path) -> Result<&Relation> {
        if let Some(found) = self.temporary.get(path) {
            return Ok(found);
        }
        let database = self.database(&path.catalog, &path.database)?;
        database.relations.get(&path.name).ok_or_else(|| {
            let here = (&path.catalog, &path.database);
            let temporary = self.temporary.keys().filter(|found| (&found.catalog, &found.database) == here);
            let names = database.relations.keys().chain(temporary.map(|found| &found.name));
            let hint = suggestion(&path.name, names);
            Error::input(format!("there is no table '{}' in {}.{}{hint}", path.name, path.catalog, path.database))
        })
    }

    /// The table at a path.
    ///
    /// # Errors
    /// There is none, or a view.
    pub fn table(&self, path: &Path) -> Result<&Arc<Table>> {
        match self.relation(path)? {
            Relation::Table(table) => Ok(table),
            Relation::View(_) => Err(Error::input(format!("'{path}' is a view, not a table"))),
        }
    }

    fn space(&self, catalog: &str) -> Result<&Space> {
        self.catalogs.get(catalog).ok_or_else(|| unknown("catalog", catalog, self.catalogs.keys()))
    }

    fn space_mut(&mut self, catalog: &str) -> Result<&mut Space> {
        self.space(catalog)?;
        Ok(self.catalogs.get_mut(catalog).expect("it was just found"))
    }

    fn database(&self, catalog: &str, database: &str) -> Result<&Database> {
        let space = self.space(catalog)?;
        space.databases.get(database).ok_or_else(|| unknown("database", database, space.databases.keys()))
    }

    fn database_mut(&mut self, path: &Path) -> Result<&mut Database> {
        self.database(&path.catalog, &path.database)?;
        let space = self.catalogs.get_mut(&path.catalog).expect("it was just found");
        Ok(space.databases.get_mut(&path.database).expect("it was just found"))
    }

    /// Adds a table or view.
    ///
    /// # Errors
    /// There is one already, unless that is no mistake; or there is no such database.
    pub fn create(&mut self, path: Path, relation: Relation, is_temporary: bool, if_not_exists: bool) -> Result<()> {
        self.database(&path.catalog, &path.database)?;
        let is_there = match is_temporary {
            true => self.temporary.contains_key(&path),
            false => self.database(&path.catalog, &path.database)?.relations.contains_key(&path.name),
        };
        match is_there {
            true if if_not_exists => return Ok(()),
            true => return exists("table", path),
            false if is_temporary => self.temporary.insert(path, relation),
            false => self.database_mut(&path)?.relations.insert(path.name, relation),
        };
        Ok(())
    }

    /// Adds a view, or replaces one if that was said.
    ///
    /// # Errors
    /// See [`Catalog::create`].
    pub fn create_view(&mut self, view: &CreateView) -> Result<()> {
        let path = self.resolve(&view.name.parts)?;
        let (catalog, database) = self.current.clone();
        let (query, columns, comment) = (view.query.clone(), view.columns.clone(), view.comment.clone());
        let mut is_temporary = view.is_temporary;
        if view.is_alter {
            is_temporary = self.temporary.contains_key(&path);
            self.drop(&path, true, is_temporary, false)?;
        }
        let relation = Relation::View(Arc::new(View { query, columns, comment, catalog, database }));
        self.create(path, relation, is_temporary, view.if_not_exists)
    }

    /// Takes a table or view away, and says whether there was one.
    ///
    /// # Errors
    /// There is none, unless that is no mistake; or it is the other kind.
    pub fn drop(&mut self, path: &Path, is_view: bool, is_temporary: bool, if_exists: bool) -> Result<bool> {
        let kind = |relation: &Relation| matches!(relation, Relation::View(_));
        let found = match self.temporary.get(path) {
            Some(found) => Ok(found),
            None if is_temporary => Err(unknown("temporary table", &path.to_string(), None::<&str>)),
            None => self.relation(path),
        };
        match found {
            Ok(found) if kind(found) != is_view => {
                let (is, other) = if is_view { ("table", "TABLE") } else { ("view", "VIEW") };
                return Err(Error::input(format!("'{path}' is a {is}: say DROP {other}")));
            }
            Ok(_) => {}
            Err(_) if if_exists => return Ok(false),
            Err(error) => return Err(error),
        }
        if !is_temporary && self.temporary.contains_key(path) {
            let what = if is_view { "VIEW" } else { "TABLE" };
            return Err(Error::input(format!("'{path}' is temporary: say DROP TEMPORARY {what}")));
        }
        let is_dropped = match is_temporary {
            true => self.temporary.remove(path).is_some(),
            false => self.database_mut(path)?.relations.remove(&path.name).is_some(),
        };
        Ok(is_dropped)
    }

    /// Gives a table or view another name, in the same database.
    ///
    /// # Errors
    /// There is none, or the other name is taken.
    pub fn rename(&mut self, from: &Path, to: &Name) -> Result<()> {
        let to = match to.parts.as_slice() {
            [name] => Path { name: name.clone(), ..from.clone() },
            parts => self.resolve(parts)?,
        };
        if (&to.catalog, &to.database) != (&from.catalog, &from.database) {
            return Err(Error::input(format!("'{from}' cannot be renamed to '{to}': it stays in its database")));
        }
        self.relation(from)?;
        if self.relation(&to).is_ok() {
            return exists("table", to);
        }
        if let Some(relation) = self.temporary.remove(from) {
            self.temporary.insert(to, relation);
        } else {
            let relations = &mut self.database_mut(from)?.relations;
            let relation = relations.remove(&from.name).expect("it was just found");
            relations.insert(to.name, relation);
        }
        Ok(())
    }

    /// Changes the options of a table.
    ///
    /// # Errors
    /// There is no such table.
    pub fn alter_options(&mut self, path: &Path, change: impl FnOnce(&mut Options)) -> Result<()> {
        let mut table = self.table(path)?.as_ref().clone();
        change(&mut table.options);
        self.replace(path, table)
    }

    /// Puts a table in the place of the one that is there.
    ///
    /// # Errors
    /// There is no such database.
    pub fn replace(&mut self, path: &Path, table: Table) -> Result<()> {
        let relation = Relation::Table(Arc::new(table));
        if self.temporary.contains_key(path) {
            self.temporary.insert(path.clone(), relation);
        } else {
            self.database_mut(path)?.relations.insert(path.name.clone(), relation);
        }
        Ok(())
    }

    /// Adds a catalog, with the database `default`.
    ///
    /// # Errors
    /// There is one already, unless that is no mistake.
    pub fn create_catalog(&mut self, name: &str, options: Options, if_not_exists: bool) -> Result<()> {
        if self.catalogs.contains_key(name) {
            return if if_not_exists { Ok(()) } else { exists("catalog", name) };
        }
        let default = options.get("default-database").map_or("default", String::as_str).to_owned();
        let databases = BTreeMap::from([(default, Database::default())]);
        self.catalogs.insert(name.to_owned(), Space { options, databases });
        Ok(())
    }

    /// Takes a catalog away.
    ///
    /// # Errors
    /// There is none, unless that is no mistake; or it is in use.
    pub fn drop_catalog(&mut self, name: &str, if_exists: bool) -> Result<()> {
        if name == self.current.0 {
            return Err(Error::input(format!("the catalog '{name}' is in use: USE CATALOG another first")));
        }
        match self.space(name) {
            Ok(_) => self.catalogs.remove(name).map_or(Ok(()), |_| Ok(())),
            Err(_) if if_exists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adds a database.
    ///
    /// # Errors
    /// There is one already, unless that is no mistake; or there is no such catalog.
    pub fn create_database(&mut self, name: &Name, if_not_exists: bool) -> Result<()> {
        let (catalog, database) = self.database_name(name)?;
        let databases = &mut self.space_mut(&catalog)?.databases;
        if databases.contains_key(&database) {
            return if if_not_exists { Ok(()) } else { exists("database", name) };
        }
        databases.insert(database, Database::default());
        Ok(())
    }

    /// Takes a database away.
    ///
    /// # Errors
    /// There is none, unless that is no mistake; something is in it that should not go too; or it is in use.
    pub fn drop_database(&mut self, name: &Name, if_exists: bool, is_cascade: bool) -> Result<()> {
        let (catalog, database) = self.database_name(name)?;
        match self.database(&catalog, &database) {
            Ok(found) if !found.relations.is_empty() && !is_cascade => {
                return Err(Error::input(format!(
                    "the database '{name}' is not empty: say CASCADE to drop what is in it"
                )));
            }
            Ok(_) => {}
            Err(_) if if_exists => return Ok(()),
            Err(error) => return Err(error),
        }
        if self.current == (catalog.clone(), database.clone()) {
            return Err(Error::input(format!("the database '{name}' is in use: USE another first")));
        }
        self.space_mut(&catalog)?.databases.remove(&database);
        Ok(())
    }

    fn database_name(&self, name: &Name) -> Result<(String, String)> {
        match name.parts.as_slice() {
            [database] => Ok((self.current.0.clone(), database.clone())),
            [catalog, database] => Ok((catalog.clone(), database.clone())),
            _ => Err(Error::input(format!("'{name}' is no database's name"))),
        }
    }

    /// `USE CATALOG c`.
    ///
    /// # Errors
    /// There is no such catalog.
    pub fn use_catalog(&mut self, name: &str) -> Result<()> {
        let space = self.space(name)?;
        let default = space.options.get("default-database").map(String::as_str);
        let known = ["default_database", "default"].into_iter();
        let found = default.into_iter().chain(known).find(|database| space.databases.contains_key(*database));
        let database = found.map(str::to_owned).or_else(|| space.databases.keys().next().cloned());
        self.current = (name.to_owned(), database.unwrap_or_default());
        Ok(())
    }

    /// `USE d`.
    ///
    /// # Errors
    /// There is no such database.
    pub fn use_database(&mut self, name: &Name) -> Result<()> {
        let found = self.database_name(name)?;
        self.database(&found.0, &found.1)?;
        self.current = found;
        Ok(())
    }

    /// The names of the catalogs.
    pub fn catalog_names(&self) -> impl Iterator<Item = &str> {
        self.catalogs.keys().map(String::as_str)
    }

    /// The names of a catalog's databases.
    ///
    /// # Errors
    /// There is no such catalog.
    pub fn database_names(&self, catalog: &str) -> Result<impl Iterator<Item = &str>> {
        Ok(self.space(catalog)?.databases.keys().map(String::as_str))
    }

    /// What is in a database, by name; what is temporary instead of what it hides.
    ///
    /// # Errors
    /// There is no such database.
    pub fn relations(&self, catalog: &str, database: &str) -> Result<BTreeMap<&str, &Relation>> {
        let mut found: BTreeMap<&str, &Relation> = self
            .database(catalog, database)?
            .relations
            .iter()
            .map(|(name, relation)| (name.as_str(), relation))
            .collect();
        let here = |path: &&Path| path.catalog == catalog && path.database == database;
        for path in self.temporary.keys().filter(here) {
            found.insert(&path.name, &self.temporary[path]);
        }
        Ok(found)
    }

    /// Offers a function of the program to CREATE FUNCTION, and to queries under the same name.
    pub fn register(&mut self, identifier: &str, function: UserFunction) {
        self.functions.insert(identifier.to_lowercase(), function.clone());
        self.implementations.insert(identifier.to_owned(), function);
    }

    /// `CREATE FUNCTION name AS 'identifier'`.
    ///
    /// # Errors
    /// The program offers no such function, or the name is taken.
    pub fn create_function(&mut self, name: &Name, identifier: &str, if_not_exists: bool) -> Result<()> {
        let Some(found) = self.implementations.get(identifier).cloned() else {
            let hint = suggestion(identifier, self.implementations.keys());
            return Err(Error::input(format!(
                "the program that runs this script has no function '{identifier}'{hint}; functions are written in Rust and registered there"
            )));
        };
        let lower = name.parts.last().map(|name| name.to_lowercase()).unwrap_or_default();
        if self.functions.contains_key(&lower) {
            return if if_not_exists { Ok(()) } else { exists("function", name) };
        }
        self.functions.insert(lower, found);
        Ok(())
    }

    /// `DROP FUNCTION name`.
    ///
    /// # Errors
    /// There is none, unless that is no mistake.
    pub fn drop_function(&mut self, name: &Name, if_exists: bool) -> Result<()> {
        let last = name.parts.last().map_or("", String::as_str);
        match self.functions.remove(&last.to_lowercase()) {
            None if !if_exists => Err(unknown("function", last, self.functions.keys())),
            _ => Ok(()),
        }
    }

    /// The user's function of a name, in any case.
    pub fn function(&self, name: &str) -> Option<&UserFunction> {
        self.functions.get(&name.to_lowercase())
    }

    /// The names of the user's functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn table() -> Relation {
        Relation::Table(Arc::new(Table::default()))
    }

    fn path(catalog: &Catalog, name: &str) -> Path {
        let parts: Vec<_> = name.split('.').map(str::to_owned).collect();
        catalog.resolve(&parts).expect("a name")
    }

    fn fails<T: std::fmt::Debug>(result: Result<T>, message: Expect) {
        message.assert_eq(&result.expect_err("it fails").message);
    }

    #[test]
    fn names_keep_their_case_and_near_ones_are_suggested() {
        let mut catalog = Catalog::default();
        catalog.create(path(&catalog, "Orders"), table(), false, false).expect("created");
        assert!(catalog.relation(&path(&catalog, "default_database.Orders")).is_ok());
        fails(
            catalog.relation(&path(&catalog, "orders")),
            expect!["there is no table 'orders' in default_catalog.default_database; did you mean 'Orders'?"],
        );
        fails(
            catalog.relation(&path(&catalog, "default_databse.Orders")),
            expect!["there is no database 'default_databse'; did you mean 'default_database'?"],
        );
        fails(
            catalog.create(path(&catalog, "Orders"), table(), false, false),
            expect![
                "the table 'default_catalog.default_database.Orders' exists already: say IF NOT EXISTS, or DROP it first"
            ],
        );
        assert!(catalog.create(path(&catalog, "Orders"), table(), false, true).is_ok());
        fails(
            catalog.drop(&path(&catalog, "Orders"), true, false, false),
            expect!["'default_catalog.default_database.Orders' is a table: say DROP TABLE"],
        );
    }

    #[test]
    fn temporary_tables_hide_others() {
        let mut catalog = Catalog::default();
        let t = path(&catalog, "t");
        catalog.create(t.clone(), table(), false, false).expect("created");
        let commented = Table { comment: Some("temporary".to_owned()), ..Table::default() };
        catalog.create(t.clone(), Relation::Table(Arc::new(commented)), true, false).expect("created");
        assert_eq!(catalog.table(&t).expect("there").comment.as_deref(), Some("temporary"));
        fails(
            catalog.drop(&t, false, false, false),
            expect!["'default_catalog.default_database.t' is temporary: say DROP TEMPORARY TABLE"],
        );
        assert!(catalog.drop(&t, false, true, false).expect("dropped"));
        assert_eq!(catalog.table(&t).expect("there").comment, None);
        catalog.rename(&t, &Name::new(["u"])).expect("renamed");
        assert!(catalog.relation(&t).is_err());
        assert_eq!(catalog.relations("default_catalog", "default_database").expect("there").len(), 1);
    }

    #[test]
    fn catalogs_and_databases() {
        let mut catalog = Catalog::default();
        catalog.create_catalog("c", Options::new(), false).expect("created");
        catalog.use_catalog("c").expect("there");
        assert_eq!(catalog.current(), ("c", "default"));
        catalog.create_database(&Name::new(["d"]), false).expect("created");
        catalog.use_database(&Name::new(["d"])).expect("there");
        catalog.create(path(&catalog, "t"), table(), false, false).expect("created");
        fails(
            catalog.drop_database(&Name::new(["c", "d"]), false, false),
            expect!["the database 'c.d' is not empty: say CASCADE to drop what is in it"],
        );
        catalog.use_catalog("default_catalog").expect("there");
        assert_eq!(catalog.current(), ("default_catalog", "default_database"));
        catalog.drop_database(&Name::new(["c", "d"]), false, true).expect("dropped");
        catalog.drop_catalog("c", false).expect("dropped");
        fails(catalog.use_catalog("c"), expect!["there is no catalog 'c'"]);
    }

    #[test]
    fn functions_are_those_of_the_program() {
        let mut catalog = Catalog::default();
        fails(
            catalog.create_function(&Name::new(["f"]), "score", false),
            expect![
                "the program that runs this script has no function 'score'; functions are written in Rust and registered there"
            ],
        );
    }
}
