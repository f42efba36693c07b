// Package webpush wakes a browser up by the push service of its maker (RFC 8030).
//
// A wake-up carries no data: what is encrypted for the browser (RFC 8291) is empty text, padded to
// one length. The push service learns who is woken, when, from which address, and [Contact].
//
// The address of a push service comes from a browser, so it is hostile input. A [Sender] connects to
// public addresses only, at the port of HTTPS, follows no redirect, reads no answer and gives up
// after [Timeout]. The only credential that it sends is a token of its own key, for this service
// alone (VAPID, RFC 8292).
package webpush

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

const (
	// Timeout is how long sending one wake-up may take.
	Timeout = 10 * time.Second
	// Contact is where a push service can complain: VAPID asks for it. It says nothing of the user.
	Contact = "https://github.com/codexmcp/codexmcp"
	// keep is how long a push service keeps a wake-up for a device that is not reachable.
	keep = 10 * time.Minute
)

// ErrGone is the error of [Sender.Send] if the push service does not know the subscription, or no
// longer.
var ErrGone = errors.New("the subscription has ended")

// A Sender sends wake-ups, signed with a key of its own. It is safe for concurrent use.
type Sender struct {
	key    *ecdsa.PrivateKey
	public string
	client *http.Client
	own    bool // the client is the caller's
}

// NewSender returns a sender with a new key. It sends with the client, which then decides about the
// addresses to which it connects; nil connects to public addresses only, without a proxy.
func NewSender(client *http.Client) (*Sender, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("webpush: %w", err)
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("webpush: %w", err)
	}
	s := &Sender{key: key, public: encode(public), client: &http.Client{}, own: client != nil}
	if s.own {
		*s.client = *client
	} else {
		s.client.Transport = &http.Transport{
			DialContext:            (&net.Dialer{Control: publicOnly}).DialContext,
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 16 << 10,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		}
	}
	s.client.Jar = nil
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// publicOnly refuses connections to addresses that are not on the public Internet. It has the form
// of [net.Dialer.Control], so it sees what a name was resolved to.
func publicOnly(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && webaddr.Public(to.Addr()) {
		return nil
	}
	return errors.New("the address of the push service is not public")
}

// Key returns the public key of the sender, as browsers take it (applicationServerKey).
func (s *Sender) Key() string { return s.public }

// A Subscription is one that a browser has made for a sender's key.
type Subscription struct {
	endpoint string
	origin   string
	public   *ecdh.PublicKey
	auth     []byte
}

// Subscription reads the members of a browser's PushSubscription. The sender decides which addresses
// it sends to; the errors quote nothing.
func (s *Sender) Subscription(endpoint, p256dh, auth string) (*Subscription, error) {
	a, err := webaddr.Parse(endpoint)
	if err != nil || !strings.HasPrefix(endpoint, "https://") {
		return nil, fmt.Errorf("endpoint is no address that begins with https://, or is longer than %d bytes", webaddr.MaxAddress)
	}
	if !s.own && (a.Nearby() || a.Port() != 443) {
		return nil, errors.New("endpoint is not at the port 443 of a public host")
	}
	u, err := url.Parse(a.String())
	if err != nil {
		return nil, errors.New("endpoint cannot be read")
	}
	point, err := decode(p256dh)
	if err != nil {
		return nil, errors.New("p256dh is not base64url")
	}
	public, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, errors.New("p256dh is not a point of P-256")
	}
	secret, err := decode(auth)
	if err != nil || len(secret) != 16 {
		return nil, errors.New("auth does not have 16 bytes as base64url")
	}
	return &Subscription{endpoint: a.String(), origin: u.Scheme + "://" + u.Host, public: public, auth: secret}, nil
}

// Endpoint returns the address that wakes the browser up. Who has it cannot use it without the
// sender's key, but it identifies the browser.
func (s *Subscription) Endpoint() string { return s.endpoint }

// Origin returns the part of the address that may be logged.
func (s *Subscription) Origin() string { return s.origin }

// Send sends a wake-up. The error is [ErrGone] if the subscription must not be used again, and never
// quotes the endpoint or an answer.
func (s *Sender) Send(ctx context.Context, to *Subscription) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	body, err := seal(to.public, to.auth)
	if err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	token, err := s.token(to.origin, time.Now())
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.endpoint, bytes.NewReader(body))
	if err != nil {
		return errors.New("the endpoint cannot be used")
	}
	req.Header = http.Header{
		"Authorization":    {"vapid t=" + token + ", k=" + s.public},
		"Content-Encoding": {"aes128gcm"},
		"Content-Type":     {"application/octet-stream"},
		"Topic":            {"question"}, // a newer wake-up replaces one that is not delivered
		"Ttl":              {strconv.Itoa(int(keep.Seconds()))},
		"Urgency":          {"high"},
		"User-Agent":       {""}, // none
	}
	res, err := s.client.Do(req)
	if err != nil {
		if quoting, ok := errors.AsType[*url.Error](err); ok {
			err = quoting.Err
		}
		return err
	}
	_ = res.Body.Close() // unread
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return ErrGone
	case res.StatusCode < 200 || res.StatusCode > 299:
		return fmt.Errorf("the push service answered with status %d", res.StatusCode)
	}
	return nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decode reads base64url, with or without padding.
func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
}
