//! Periods in which certificates are valid.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error, RootCertStore};

/// Message about the first of these certificates that is not valid at a time, with the date in UTC; `None`
/// when all are.
pub(super) fn fault(certificates: &[CertificateDer<'_>], now: UnixTime) -> Option<String> {
    certificates.iter().find_map(|certificate| {
        let way_out = "clients would refuse it; renew it, or set the clock of this machine";
        match judged(certificate, now)? {
            CertificateError::ExpiredContext { not_after, .. } => {
                Some(format!("the certificate expired on {}: {way_out}", date(not_after)))
            }
            CertificateError::NotValidYetContext { not_before, .. } => {
                Some(format!("the certificate is not valid before {}: {way_out}", date(not_before)))
            }
            _ => None,
        }
    })
}

/// The verdict of a client that trusts this very certificate; `None` when it accepts it.
fn judged(certificate: &CertificateDer<'_>, now: UnixTime) -> Option<CertificateError> {
    let mut roots = RootCertStore::empty();
    // A file that holds no certificate is refused with its own message when the server is set up.
    roots.add(certificate.clone().into_owned()).ok()?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), super::provider());
    let name = ServerName::try_from("localhost").ok()?;
    // The dates are looked at first, before issuer, purpose and name.
    match verifier.build().ok()?.verify_server_cert(certificate, &[], &name, &[], now) {
        Err(Error::InvalidCertificate(error)) => Some(error),
        _ => None,
    }
}

/// A time in words: Hinnant's `civil_from_days` (chrono-Compatible Low-Level Date Algorithms), for years
/// from 1970 on.
fn date(time: UnixTime) -> String {
    let (days, second) = (time.as_secs() / 86_400, time.as_secs() % 86_400);
    // Days since 1 March of the year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn validity_dates_match_calendar() {
        // As `date -u -d @SECONDS` has them.
        for (seconds, says) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(UnixTime::since_unix_epoch(Duration::from_secs(seconds))), says);
        }
    }
}
