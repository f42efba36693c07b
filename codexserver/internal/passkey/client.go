package passkey

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
)

// Party is a relying party: the site for which keys are made and used.
type Party struct {
	// ID is the host without its port, which stands in the keys.
	ID string
	// Origin is the page's origin, as browsers send it.
	Origin string
}

// NewParty returns the relying party of an origin: https, or http at localhost. An IP address is no
// relying party for browsers.
func NewParty(origin string) (Party, error) {
	canonical, err := webaddr.ParseOrigin(origin)
	if err != nil {
		return Party{}, err
	}
	u, err := url.Parse(canonical)
	if err != nil {
		return Party{}, err
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return Party{}, fmt.Errorf("browsers use no passkeys at the address %s; name a host, as localhost", u.Hostname())
	}
	return Party{ID: u.Hostname(), Origin: canonical}, nil
}

// The types of client data.
const (
	typeCreate = "webauthn.create"
	typeGet    = "webauthn.get"
)

// maxClient is the length of the longest client data, in bytes.
const maxClient = 8 << 10

var (
	errClient    = errors.New("the browser's data cannot be read")
	errType      = errors.New("the browser did something else than asked")
	errChallenge = errors.New("the signature is for another question, another decision, or an earlier time")
	errOrigin    = errors.New("the signature was made on another page")
)

// clientData is what the browser says, and the authenticator signs.
type clientData struct {
	Type        string  `json:"type"`
	Challenge   Bytes   `json:"challenge"`
	Origin      string  `json:"origin"`
	CrossOrigin bool    `json:"crossOrigin"`
	TopOrigin   *string `json:"topOrigin"`
}

// readClient reads client data. Other members may come with newer browsers.
func readClient(raw []byte) (*clientData, error) {
	var c clientData
	if len(raw) > maxClient || json.Unmarshal(raw, &c) != nil {
		return nil, errClient
	}
	return &c, nil
}

// check returns an error unless the browser did on the page of p what it was asked, and in no frame of
// another page.
func (c *clientData) check(kind string, p Party, challenge []byte) error {
	switch {
	case c.Type != kind:
		return errType
	case subtle.ConstantTimeCompare(c.Challenge, challenge) != 1 || len(challenge) == 0:
		return errChallenge
	case c.Origin != p.Origin || c.CrossOrigin || c.TopOrigin != nil:
		return errOrigin
	}
	return nil
}

// Bytes are written in base64url without padding, as browsers do.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It accepts one way to write the same bytes.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	for _, c := range text { // which the decoder would leave out
		if c == '\n' || c == '\r' {
			return errors.New("a line break in base64url")
		}
	}
	*b, err = base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	return err
}

// String returns the text.
func (b Bytes) String() string { return base64.RawURLEncoding.EncodeToString(b) }
