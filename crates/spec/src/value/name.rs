//! Names of machines, clusters and domains, as Kubernetes and DNS allow them.

use std::fmt;

use super::Mismatch;

/// A machine's or cluster's name: an RFC 1123 subdomain of at most 63 characters, so that it can
/// be a host name and a label's value as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A domain name: an RFC 1123 subdomain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(String);

impl Name {
    /// Parses a name; the error suggests a valid one.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        subdomain(text)?;
        if text.len() > 63 {
            return Err(Mismatch::new(
                format!("{} characters long", text.len()),
                "use at most 63 characters: the name is a host name and a label in Kubernetes",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The validated text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DnsName {
    /// Parses a name; the error suggests a valid one.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        subdomain(text)?;
        Ok(Self(text.to_owned()))
    }

    /// Parses a name whose first label may be `*`.
    pub fn parse_wildcard(text: &str) -> Result<Self, Mismatch> {
        subdomain(text.strip_prefix("*.").unwrap_or(text))?;
        Ok(Self(text.to_owned()))
    }

    /// The validated text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn subdomain(text: &str) -> Result<(), Mismatch> {
    let lower = text.to_ascii_lowercase();
    let suggestion = || {
        let better: String = lower
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        let better = better.trim_matches(['-', '.']);
        if better.is_empty()
            || better.contains("..")
            || better.contains("-.")
            || better.contains(".-")
        {
            "use lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit".to_owned()
        } else {
            format!("write {better}: lower-case letters, digits, '-' and '.' are allowed")
        }
    };
    let problem = if text.is_empty() {
        return Err(Mismatch::new("empty", "give it a name"));
    } else if text.len() > 253 {
        return Err(Mismatch::new(
            format!("{} characters long", text.len()),
            "use at most 253 characters",
        ));
    } else if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"-.".contains(*c))
    {
        format!("not a valid name: it contains {bad:?}")
    } else if lower != text {
        "not a valid name: it contains upper-case letters".to_owned()
    } else if let Some(part) = text
        .split('.')
        .find(|part| part.is_empty() || part.starts_with('-') || part.ends_with('-'))
    {
        if part.is_empty() {
            "not a valid name: it contains an empty part".to_owned()
        } else {
            format!("not a valid name: \"{part}\" begins or ends with '-'")
        }
    } else if text.split('.').any(|part| part.len() > 63) {
        return Err(Mismatch::new(
            "not a valid name: a part has more than 63 characters",
            "shorten the parts between the dots to 63 characters each",
        ));
    } else {
        return Ok(());
    };
    Err(Mismatch::new(problem, suggestion()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_rfc_1123() {
        for good in ["a", "k8s-master-0", "a.b-c.d", "0", &"a".repeat(63)] {
            assert_eq!(Name::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            "a.-b",
            "ä",
            "a b",
            &"a".repeat(64),
        ] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
        assert!(DnsName::parse(&format!("{0}.{0}.{0}", "a".repeat(60))).is_ok());
        assert!(DnsName::parse(&"a.".repeat(130)).is_err());
        assert!(DnsName::parse(&"a".repeat(64)).is_err());
        assert!(DnsName::parse("*.example.org").is_err());
        assert!(DnsName::parse_wildcard("*.example.org").is_ok());
    }

    #[test]
    fn suggests_a_name_that_is_valid() {
        assert!(
            Name::parse("K8s_Master")
                .unwrap_err()
                .remedy
                .starts_with("write k8s-master:")
        );
        assert!(
            Name::parse("..")
                .unwrap_err()
                .remedy
                .starts_with("use lower-case")
        );
    }
}
