//! Accounts and their transactions: what both versions of the job have in common, its input, its arguments and its output.
//!
//! The versions themselves are `src/bin/accounts-v1.rs` and `src/bin/accounts-v2.rs`. They differ in what they keep of an
//! account, and write the same entries.
//!
//! ```
//! use accounts::{ACCOUNTS, transaction};
//!
//! assert!((0..1000).map(transaction).all(|transaction| transaction.account < ACCOUNTS));
//! assert_eq!(transaction(17), transaction(17));
//! ```

use flott::datagen::GeneratorSource;
use flott::filesystem::FileSink;
use flott::prelude::*;
use serde::{Deserialize, Serialize};

/// How many accounts there are.
pub const ACCOUNTS: u64 = 160;

/// A multiple of it are the numbers of an account's transactions apart. The generator deals its numbers out in strides
/// of every 16th, so an account's transactions keep their order wherever a rescale puts the strides.
const STRIDES: u64 = 16;

/// The arguments of both versions.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// The folder for lines of `account,transaction,balance,count`
    #[arg(long, value_name = "DIR")]
    pub output: String,

    /// Ends after so many transactions; endless if not given
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Makes no more than so many transactions in a second
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    pub rows_per_second: f64,
}

/// Money that comes to an account, or leaves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// 0, 1, 2, …
    pub number: u64,
    /// Whose it is.
    pub account: u64,
    /// Negative when it leaves.
    pub amount_cents: i64,
    /// Whether it comes back from someone who had got it.
    pub is_refund: bool,
}

/// A line of the output: an account after a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The account.
    pub account: u64,
    /// The number of the transaction.
    pub transaction: u64,
    /// What is in the account now.
    pub balance_cents: i64,
    /// How many transactions the account has had.
    pub count: u64,
}

/// Transaction number `number`: the same whenever and wherever it is made.
pub fn transaction(number: u64) -> Transaction {
    let random = split_mix(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (high, low) = (random >> 32, random & 0xFFFF_FFFF);
    let amount_cents = (low % 20_001) as i64 - 8_000;
    Transaction {
        number,
        account: number % STRIDES + STRIDES * (high % (ACCOUNTS / STRIDES)),
        amount_cents,
        is_refund: amount_cents > 0 && random >> 60 == 0,
    }
}

/// The output function of SplitMix64.
fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The stream of transactions. One subtask makes them at first, so each account's come in the order of their numbers at any
/// parallelism, and its balances are the same in every run.
pub fn transactions(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStream<Transaction> {
    let mut source = GeneratorSource::new(transaction).rows_per_second(arguments.rows_per_second);
    if let Some(count) = arguments.count {
        source = source.count(count);
    }
    env.from_generator(source).name("Transactions").uid("transactions").set_parallelism(1)
}

/// Writes the entries into files, exactly once.
pub fn write(entries: DataStream<Entry>, arguments: &Arguments) {
    entries.sink_to(FileSink::csv(arguments.output.as_str()).has_header(false)).name("Files").uid("files");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_the_transactions_of_one_stride() {
        let transactions: Vec<Transaction> = (0..10_000).map(transaction).collect();
        assert!(transactions.iter().all(|transaction| transaction.account % STRIDES == transaction.number % STRIDES));
        assert!((0..ACCOUNTS).all(|account| transactions.iter().any(|transaction| transaction.account == account)));
    }

    #[test]
    fn money_comes_and_goes_and_comes_back() {
        let count = |is_it: fn(&Transaction) -> bool| (0..1000).map(transaction).filter(is_it).count();
        assert!(count(|transaction| transaction.amount_cents < 0) > 300);
        assert!(count(|transaction| transaction.is_refund) > 10);
        assert_eq!(count(|transaction| transaction.is_refund && transaction.amount_cents < 0), 0);
    }
}
