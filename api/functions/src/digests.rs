//! Digests, UUIDs, URLs and texts that are maps.

use std::sync::Arc;

use arrow::array::{ArrayRef, MapBuilder, StringBuilder};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use md5::Digest as _;

use crate::define::{Call, Function, Takes, Types, is};
use crate::types::map_of;
use crate::urls;

use Takes::{Data, Int, Text};

macro_rules! digest {
    ($name:literal, $digest:expr) => {
        Function::new($name, &[Data], is::text, |call| {
            let values = call.bytes(0)?;
            call.make_texts(|row| values.get(row).map(|value| hex(&$digest(value))))
        })
        .strict()
    };
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha2_of<D: sha2::Digest>(value: &[u8]) -> Vec<u8> {
    D::digest(value).to_vec()
}

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        digest!("flink_md5", |value: &[u8]| md5::Md5::digest(value).to_vec()),
        digest!("sha1", |value: &[u8]| sha1::Sha1::digest(value).to_vec()),
        digest!("flink_sha224", sha2_of::<sha2::Sha224>),
        digest!("flink_sha256", sha2_of::<sha2::Sha256>),
        digest!("flink_sha384", sha2_of::<sha2::Sha384>),
        digest!("flink_sha512", sha2_of::<sha2::Sha512>),
        Function::new("sha2", &[Data, Int], is::text, |call| {
            let (values, bits) = (call.bytes(0)?, call.ints(1)?);
            call.make_texts(|row| {
                let value = values.get(row)?;
                Some(hex(&match bits.get(row)? {
                    224 => sha2_of::<sha2::Sha224>(value),
                    256 => sha2_of::<sha2::Sha256>(value),
                    384 => sha2_of::<sha2::Sha384>(value),
                    512 => sha2_of::<sha2::Sha512>(value),
                    _ => return None,
                }))
            })
        }),
        Function::new("flink_uuid", &[], is::text, |call| {
            call.make_texts(|_| {
                let mut id = flott_env::random_id();
                id[6] = id[6] & 0x0f | 0x40;
                id[8] = id[8] & 0x3f | 0x80;
                let shown = hex(&id);
                Some([&shown[..8], &shown[8..12], &shown[12..16], &shown[16..20], &shown[20..]].join("-"))
            })
        })
        .volatile()
        .never_null(),
        Function::new("str_to_map", &[Text, Text, Text], text_map, str_to_map).least(1),
        Function::new("flink_parse_url", &[Text, Text, Text], is::text, |call| {
            let (texts, parts) = (call.texts(0)?, call.texts(1)?);
            let keys = if call.has(2) { Some(call.texts(2)?) } else { None };
            call.make_texts(|row| {
                let key = match &keys {
                    Some(keys) => Some(keys.get(row)?),
                    None => None,
                };
                urls::part_of(texts.get(row)?, parts.get(row)?, key)
            })
        })
        .least(2),
        Function::new("flink_url_encode", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| {
                texts.get(row).map(|text| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>())
            })
        }),
        Function::new("flink_url_decode", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| urls::decode(texts.get(row)?))
        }),
    ];
    functions.into_iter().map(Function::make).collect()
}

fn text_map(_: &Types<'_>) -> Option<DataType> {
    Some(map_of(DataType::Utf8, Field::new("value", DataType::Utf8, true)))
}

fn str_to_map(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let pairs = if call.has(1) { Some(call.texts(1)?) } else { None };
    let sides = if call.has(2) { Some(call.texts(2)?) } else { None };
    let mut made = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..call.rows {
        let between = pairs.as_ref().map_or(Some(","), |pairs| pairs.get(row));
        let within = sides.as_ref().map_or(Some("="), |sides| sides.get(row));
        let (Some(text), Some(between), Some(within)) = (texts.get(row), between, within) else {
            made.append(false)?;
            continue;
        };
        let mut found: Vec<(&str, Option<&str>)> = Vec::new();
        for pair in text.split(between).filter(|_| !text.is_empty()) {
            let (key, value) = pair.split_once(within).map_or((pair, None), |(key, value)| (key, Some(value)));
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => found.push((key, value)),
            }
        }
        for (key, value) in found {
            made.keys().append_value(key);
            made.values().append_option(value);
        }
        made.append(true)?;
    }
    Ok(arrow_cast(&(Arc::new(made.finish()) as ArrayRef), call.returns)?)
}
