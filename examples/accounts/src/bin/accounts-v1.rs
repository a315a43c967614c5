//! The first version: a balance and a count for each account.

use std::process::ExitCode;

use accounts::{Arguments, Entry, Transaction};
use flott::Result;
use flott::prelude::*;
use serde::{Deserialize, Serialize};

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Arguments) -> Result<()> {
    let entries = accounts::transactions(env, &arguments)
        .key_by_ref(|transaction: &Transaction| &transaction.account)
        .process(Accounts::default())
        .name("Accounts")
        .uid("accounts");
    accounts::write(entries, &arguments);
    env.execute("accounts").map(drop)
}

/// What is kept of an account.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Account {
    total_cents: i64,
    transactions: u32,
    note: String,
}

impl Account {
    fn new(first: &Transaction) -> Self {
        Self { total_cents: 0, transactions: 0, note: format!("opened by transaction {}", first.number) }
    }
}

/// Adds each transaction to its account.
#[derive(Clone, Default)]
struct Accounts {
    account: Option<ValueState<Account>>,
}

impl KeyedProcessFunction<u64, Transaction, Entry> for Accounts {
    fn open(&mut self, states: &mut KeyedStates<u64>) -> Result<()> {
        self.account = Some(states.value("account")?);
        Ok(())
    }

    fn process(
        &mut self,
        transaction: Transaction,
        cx: &mut KeyedContext<'_, u64>,
        out: &mut Collector<'_, Entry>,
    ) -> Result<()> {
        let state = self.account.as_ref().expect("open() declares it");
        let account = state.update(cx, || Account::new(&transaction));
        account.total_cents += transaction.amount_cents;
        account.transactions += 1;
        out.collect(Entry {
            account: transaction.account,
            transaction: transaction.number,
            balance_cents: account.total_cents,
            count: account.transactions.into(),
        });
        Ok(())
    }
}
