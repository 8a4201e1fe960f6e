//! The countries of ISO 3166-1, and other codes in use for them.

/// The officially assigned codes: alpha-2 and alpha-3 of each country.
///
/// `XK` for Kosovo isn't in the standard, but banks and the European Union use it.
const CODES: &str = "\
    ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW \
    AXALA AZAZE BABIH BBBRB BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN \
    BOBOL BQBES BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR BZBLZ CACAN CCCCK CDCOD CFCAF CGCOG \
    CHCHE CICIV CKCOK CLCHL CMCMR CNCHN COCOL CRCRI CUCUB CVCPV CWCUW CXCXR CYCYP CZCZE \
    DEDEU DJDJI DKDNK DMDMA DODOM DZDZA ECECU EEEST EGEGY EHESH ERERI ESESP ETETH FIFIN \
    FJFJI FKFLK FMFSM FOFRO FRFRA GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL \
    GMGMB GNGIN GPGLP GQGNQ GRGRC GSSGS GTGTM GUGUM GWGNB GYGUY HKHKG HMHMD HNHND HRHRV \
    HTHTI HUHUN IDIDN IEIRL ILISR IMIMN ININD IOIOT IQIRQ IRIRN ISISL ITITA JEJEY JMJAM \
    JOJOR JPJPN KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA KPPRK KRKOR KWKWT KYCYM KZKAZ LALAO \
    LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA LYLBY MAMAR MCMCO MDMDA MEMNE \
    MFMAF MGMDG MHMHL MKMKD MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ MRMRT MSMSR MTMLT MUMUS \
    MVMDV MWMWI MXMEX MYMYS MZMOZ NANAM NCNCL NENER NFNFK NGNGA NINIC NLNLD NONOR NPNPL \
    NRNRU NUNIU NZNZL OMOMN PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM PNPCN PRPRI \
    PSPSE PTPRT PWPLW PYPRY QAQAT REREU ROROU RSSRB RURUS RWRWA SASAU SBSLB SCSYC SDSDN \
    SESWE SGSGP SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM SRSUR SSSSD STSTP SVSLV \
    SXSXM SYSYR SZSWZ TCTCA TDTCD TFATF TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON \
    TRTUR TTTTO TVTUV TWTWN TZTZA UAUKR UGUGA UMUMI USUSA UYURY UZUZB VAVAT VCVCT VEVEN \
    VGVGB VIVIR VNVNM VUVUT WFWLF WSWSM YEYEM YTMYT ZAZAF ZMZMB ZWZWE XKXKX";

/// Codes from other lists and obsolete codes, each with the country that is most likely meant.
const OTHERS: [(&str, &str); 36] = [
    ("UK", "GB"),
    ("EL", "GR"),
    ("AC", "SH"),
    ("BU", "MM"),
    ("CP", "FR"),
    ("CQ", "GG"),
    ("DD", "DE"),
    ("DG", "IO"),
    ("DY", "BJ"),
    ("EA", "ES"),
    ("FX", "FR"),
    ("HV", "BF"),
    ("IC", "ES"),
    ("JA", "JP"),
    ("KO", "KR"),
    ("NH", "VU"),
    ("RH", "ZW"),
    ("SF", "FI"),
    ("SW", "SE"),
    ("TA", "SH"),
    ("TP", "TL"),
    ("VD", "VN"),
    ("XI", "GB"),
    ("YD", "YE"),
    ("ZR", "CD"),
    ("ENG", "GB"),
    ("GBR", "GB"),
    ("GER", "DE"),
    ("NED", "NL"),
    ("SUI", "CH"),
    ("ENGLAND", "GB"),
    ("GERMANY", "DE"),
    ("FRANCE", "FR"),
    ("UNITED KINGDOM", "GB"),
    ("UNITED STATES", "US"),
    ("SWITZERLAND", "CH"),
];

const LETTERS: usize = 26;

/// The valid second letters for each first letter, one bit per letter.
const KNOWN: [u32; LETTERS] = known();

const fn known() -> [u32; LETTERS] {
    let (codes, mut known, mut place) = (CODES.as_bytes(), [0; LETTERS], 0);
    while place < codes.len() {
        known[(codes[place] - b'A') as usize] |= 1 << (codes[place + 1] - b'A');
        place += 6;
    }
    known
}

/// Whether the text is a country's alpha-2 code.
pub(crate) fn is_country(code: &str) -> bool {
    let &[first, second] = code.as_bytes() else { return false };
    let upper = first.is_ascii_uppercase() && second.is_ascii_uppercase();
    upper && KNOWN.get(usize::from(first - b'A')).is_some_and(|row| row >> (second - b'A') & 1 == 1)
}

/// Returns the country most likely meant by a text that isn't a country code.
pub(crate) fn likely(text: &str) -> Option<&'static str> {
    let text = text.trim().to_ascii_uppercase();
    let other = OTHERS.iter().find(|(other, _)| *other == text).map(|(_, code)| *code);
    other.or_else(|| {
        let known = CODES.split_whitespace();
        let mut known = known.map(|pair| pair.split_at(2));
        known.find(|(two, three)| *two == text || *three == text).map(|(two, _)| two)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_standard() {
        let each: Vec<_> = CODES.split_whitespace().collect();
        assert_eq!(each.len(), 249 + 1);
        assert!(each.is_sorted() || each.last() == Some(&"XKXKX"));
        let counted: u32 = KNOWN.iter().map(|row| row.count_ones()).sum();
        assert_eq!(counted, 249 + 1, "a code is listed twice");
        for code in ["GB", "GR", "DE", "XK", "AQ", "SS", "CW"] {
            assert!(is_country(code), "{code}");
        }
        for code in
            ["UK", "EL", "EU", "SU", "XX", "ZZ", "AA", "AN", "CS", "YU", "de", "D", "DEU", "", "É"]
        {
            assert!(!is_country(code), "{code}");
        }
    }

    #[test]
    fn what_is_meant_is_a_country() {
        assert!(OTHERS.iter().all(|(other, code)| !is_country(other) && is_country(code)));
        for (text, code) in [("UK", "GB"), ("EL", "GR"), ("uk", "GB"), ("de", "DE"), ("DEU", "DE")]
        {
            assert_eq!(likely(text), Some(code), "{text}");
        }
        for text in ["EU", "SU", "XX", "", "ZZ", "AN"] {
            assert_eq!(likely(text), None, "{text}");
        }
    }
}
