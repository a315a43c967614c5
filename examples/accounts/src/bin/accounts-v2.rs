//! The second version: it goes on with the balances and counts of the first, and keeps more of an account.
//!
//! Two flags are mistakes to be made on purpose: `--broken` is a version that fails when it runs, `--wrong-key` one that
//! cannot take the state of the version before.

use std::process::ExitCode;

use accounts::{Entry, Transaction};
use flott::prelude::*;
use flott::{Data, Error, Result};
use serde::{Deserialize, Serialize};

#[derive(clap::Args)]
struct Version2 {
    #[command(flatten)]
    job: accounts::Arguments,

    /// Fails at its first transactions
    #[arg(long)]
    broken: bool,

    /// Names accounts by text instead of numbers
    #[arg(long)]
    wrong_key: bool,
}

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Version2) -> Result<()> {
    let transactions = accounts::transactions(env, &arguments.job);
    let function = Accounts { is_broken: arguments.broken, states: None };
    let entries = if arguments.wrong_key {
        transactions.key_by(|transaction: &Transaction| transaction.account.to_string()).process(function)
    } else {
        transactions.key_by_ref(|transaction: &Transaction| &transaction.account).process(function)
    };
    accounts::write(entries.name("Accounts").uid("accounts"), &arguments.job);
    env.execute("accounts").map(drop)
}

/// What is kept of an account. Fields are found by name in the state of the first version: what it did not have gets a
/// default, and the `note` that it had is left behind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Account {
    /// The first version called it `total_cents`.
    #[serde(alias = "total_cents")]
    balance_cents: i64,
    /// A `u32` in the first version.
    transactions: u64,
    /// The largest amount since this version is there.
    largest_cents: Option<i64>,
    /// How many of its transactions were refunds since then.
    #[serde(default)]
    refunds: u32,
}

/// Adds each transaction to its account.
#[derive(Clone)]
struct Accounts {
    is_broken: bool,
    states: Option<States>,
}

#[derive(Clone)]
struct States {
    account: ValueState<Account>,
    /// The number of the account's last refund, if it had one.
    last_refund: ValueState<u64>,
}

impl<K: Data + Eq> KeyedProcessFunction<K, Transaction, Entry> for Accounts {
    fn open(&mut self, states: &mut KeyedStates<K>) -> Result<()> {
        self.states = Some(States { account: states.value("account")?, last_refund: states.value("last_refund")? });
        Ok(())
    }

    fn process(
        &mut self,
        transaction: Transaction,
        cx: &mut KeyedContext<'_, K>,
        out: &mut Collector<'_, Entry>,
    ) -> Result<()> {
        if self.is_broken {
            return Err(Error::user_code(format!("transaction {} is too much for this version", transaction.number)));
        }
        let states = self.states.as_ref().expect("open() declares them");
        if transaction.is_refund {
            states.last_refund.set(cx, transaction.number);
        }
        let account = states.account.update(cx, Account::default);
        account.balance_cents += transaction.amount_cents;
        account.transactions += 1;
        account.largest_cents = account.largest_cents.max(Some(transaction.amount_cents));
        account.refunds += u32::from(transaction.is_refund);
        out.collect(Entry {
            account: transaction.account,
            transaction: transaction.number,
            balance_cents: account.balance_cents,
            count: account.transactions,
        });
        Ok(())
    }
}
