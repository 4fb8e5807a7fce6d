// Package connect tells of a request that failed whether it was ever sent: a
// connection was not made, or not trusted.
//
// It goes by the error alone. One that it does not know may be of a request that
// was sent.
package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
)

// Failed reports whether no connection was made, or none that is trusted, so that
// nothing was sent.
func Failed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || Untrusted(err)
}

// Untrusted reports whether the certificate of the other side does not verify, or
// what answers there does not speak TLS. Somebody has to repair that.
func Untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)
}
