//! OpenSSH files of NIST P-256 keys whose private number begins with a zero byte: one key of 256.
//!
//! OpenSSH writes that number without its leading zeros. The SSH library's decoder rejects fewer than 32 bytes as
//! damaged, so these keys are parsed here.

use russh::keys::PrivateKey;
use russh::keys::ssh_key::encoding::pem::PemLabel;
use russh::keys::ssh_key::encoding::{self, Decode, DecodePem as _, Reader};
use russh::keys::ssh_key::private::{EcdsaKeypair, EcdsaPrivateKey, KeypairData};
use russh::keys::ssh_key::public::{EcdsaPublicKey, KeyData};
use russh::keys::ssh_key::{Error, Result};
use zeroize::Zeroizing;

/// Start of the file, see OpenSSH's `PROTOCOL.key`.
const MAGIC: &[u8; 15] = b"openssh-key-v1\0";

/// Bytes of the private number.
const SIZE: usize = 32;

/// Parses an unencrypted OpenSSH file of such a key.
///
/// # Errors
/// An error for any other file, even one with a full-length number.
pub(super) fn decode(pem: &str) -> Result<PrivateKey> {
    ShortScalar::decode_pem(pem).map(|key| key.0)
}

struct ShortScalar(PrivateKey);

impl PemLabel for ShortScalar {
    const PEM_LABEL: &'static str = "OPENSSH PRIVATE KEY";
}

impl Decode for ShortScalar {
    type Error = Error;

    fn decode(reader: &mut impl Reader) -> Result<Self> {
        let mut magic = [0; MAGIC.len()];
        reader.read(&mut magic)?;
        let (cipher, derivation) = (String::decode(reader)?, String::decode(reader)?);
        reader.drain_prefixed()?;
        let keys = u32::decode(reader)?;
        if (&magic, cipher.as_str(), derivation.as_str(), keys) != (MAGIC, "none", "none", 1) {
            return Err(Error::FormatEncoding);
        }
        let public = reader.read_prefixed(KeyData::decode)?;
        reader.read_prefixed(|reader| pair(reader, &public)).map(Self)
    }
}

/// Parses the private section of the file, which repeats the public key.
fn pair(reader: &mut impl Reader, public: &KeyData) -> Result<PrivateKey> {
    if u32::decode(reader)? != u32::decode(reader)? {
        return Err(Error::FormatEncoding);
    }
    let repeated = KeyData::decode(reader)?;
    if repeated != *public {
        return Err(Error::PublicKey);
    }
    let KeyData::Ecdsa(EcdsaPublicKey::NistP256(public)) = repeated else {
        return Err(Error::FormatEncoding);
    };
    let number = Zeroizing::new(Vec::<u8>::decode(reader)?);
    let zeros = SIZE.checked_sub(number.len()).filter(|zeros| *zeros > 0);
    let mut padded = Zeroizing::new([0; SIZE]);
    let place = zeros.and_then(|zeros| padded.get_mut(zeros..)).ok_or(encoding::Error::Length)?;
    place.copy_from_slice(&number);
    // A comment and the padding of the last block.
    reader.drain(reader.remaining_len())?;
    let private = EcdsaPrivateKey::from(*padded);
    PrivateKey::new(KeypairData::Ecdsa(EcdsaKeypair::NistP256 { public, private }), "")
}
