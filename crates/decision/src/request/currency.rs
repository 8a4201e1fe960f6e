//! Currencies: the form of a code, and the ISO 4217 codes. Agents may pay in other currencies too.

/// The current ISO 4217 codes of currencies, funds and metals, in alphabetical order.
const CODES: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP \
    BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN \
    ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK \
    JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD \
    MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP \
    PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP \
    SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV \
    WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR \
    ZMW ZWG";

/// Whether the text has the form of a currency code: 3 to 8 capital letters or digits, beginning
/// with a letter.
pub fn is_code(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit();
    (3..=8).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(plain)
}

/// Whether ISO 4217 contains the code.
pub fn is_standard(code: &str) -> bool {
    CODES.split_whitespace().any(|own| own == code)
}

/// Returns the number of decimal places of a currency of ISO 4217; `None` for other currencies.
pub fn places(code: &str) -> Option<usize> {
    match code {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX"
        | "UYI" | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => Some(0),
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => Some(3),
        "CLF" | "UYW" => Some(4),
        code => is_standard(code).then_some(2),
    }
}

/// Returns the ISO 4217 codes, to suggest a similar one.
pub(crate) fn standard() -> impl Iterator<Item = &'static str> {
    CODES.split_whitespace()
}

/// Returns a warning about a currency outside ISO 4217.
pub fn doubt(code: &str) -> Option<String> {
    (!is_standard(code)).then(|| {
        format!("`{code}` is not a currency of ISO 4217; requests must contain exactly this code")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_admits_other_money_and_no_words() {
        for code in ["EUR", "USDC", "BTC", "X1Z", "ABCDEFGH"] {
            assert!(is_code(code), "{code}");
        }
        for text in ["", "EU", "eur", "1INCH", "ABCDEFGHI", "EUR ", "E-R", "ÄUR"] {
            assert!(!is_code(text), "{text}");
        }
    }

    #[test]
    fn the_standards_codes_are_known() {
        let each: Vec<_> = CODES.split_whitespace().collect();
        assert!(each.len() == 178 && each.is_sorted() && each.iter().all(|code| is_code(code)));
        assert!(is_standard("EUR") && is_standard("XXX") && is_standard("XCG"));
        assert!(
            !is_standard("EURO") && !is_standard("BTC") && !is_standard("") && !is_standard("DEM")
        );
        assert!(doubt("USDC").is_some() && doubt("USD").is_none());
    }
}
