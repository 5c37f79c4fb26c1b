//! What identifies a machine.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, is_uuid};

/// Identifiers of a machine. Clones of one image may share the first two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `/etc/machine-id`: 32 hexadecimal digits.
    pub machine_id: Option<String>,
    /// The firmware's word.
    pub product_uuid: Option<String>,
    /// Another after each boot. Containers have that of the machine they run on.
    pub boot_id: Option<String>,
}

pub(super) fn identity(answer: &Answer) -> Identity {
    let is_machine_id = |id: &String| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let uuid = |name| {
        let value = answer.value(name).filter(|value| is_uuid(value));
        value.map(|value| value.to_ascii_lowercase())
    };
    Identity {
        machine_id: answer.value("machine-id").filter(is_machine_id),
        product_uuid: uuid("product-uuid"),
        boot_id: uuid("boot-id"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn only_identifiers_count() {
        let text = "machine-id uninitialized\nboot-id x\nproduct-uuid 4C4C4544-0044-4A10-8052-B7C04F4E4D32\n";
        let identity = identity(&with_sections(&[("values", text)]));
        assert_eq!(identity.machine_id, None);
        assert_eq!(identity.boot_id, None);
        assert_eq!(
            identity.product_uuid.as_deref(),
            Some("4c4c4544-0044-4a10-8052-b7c04f4e4d32")
        );
    }
}
