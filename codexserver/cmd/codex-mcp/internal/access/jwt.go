package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// maxJWT bounds an access token, in bytes.
	maxJWT = 16 << 10
	// leeway is how much the clocks of two machines may differ.
	leeway = 30 * time.Second
)

// algorithms are those that access tokens may be signed with. All are asymmetric: with
// HS256 everyone who has the public key could sign.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// verifier takes the access tokens of one authorization server (RFC 9068, section 4).
type verifier struct {
	oauth    config.OAuth
	keys     *keySet
	subjects map[string]*principal
}

// claims are those of an access token that are looked at.
type claims struct {
	jwt.Claims
	Scope         any `json:"scope"`
	Scp           any `json:"scp"`
	EmailVerified any `json:"email_verified"`
}

// looksSigned reports whether a token has the form of a JWT.
func looksSigned(token string) bool { return len(token) <= maxJWT && strings.Count(token, ".") == 2 }

// verify returns whose access token it is and what it allows.
func (v *verifier) verify(ctx context.Context, token string) (*principal, []streamable.Scope, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return nil, nil, invalid(err)
	}
	header := parsed.Headers[0] // ParseSigned returns one
	if _, critical := header.ExtraHeaders["crit"]; critical {
		return nil, nil, invalid(errors.New("crit: no extension is understood"))
	}
	// An ID token names a user to the client, and allows nothing.
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); !strings.EqualFold(typ, "at+jwt") && !strings.EqualFold(typ, "application/at+jwt") {
		return nil, nil, invalid(errors.New("typ is not at+jwt"))
	}
	var c claims
	// A token of another issuer must not cause a request for the keys of this one.
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		return nil, nil, invalid(err)
	}
	if c.Issuer != v.oauth.Issuer {
		return nil, nil, invalid(jwt.ErrInvalidIssuer)
	}
	keys, err := v.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, nil, err
	}
	var others map[string]any
	err = errUnsigned
	for _, key := range keys {
		// The keys are those of the issuer's set alone: the header's jwk, jku and x5u are
		// the sender's to write.
		c, others = claims{}, nil
		if err = parsed.Claims(key.Key, &c, &others); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, invalid(err)
	}
	if err := v.check(&c); err != nil {
		return nil, nil, invalid(err)
	}
	return v.owner(&c, others)
}

var errUnsigned = errors.New("no key has signed it")

// check checks the claims of a token whose signature is good.
func (v *verifier) check(c *claims) error {
	if c.Expiry == nil {
		return errors.New("no exp")
	}
	return c.ValidateWithLeeway(jwt.Expected{Issuer: v.oauth.Issuer, AnyAudience: jwt.Audience{v.oauth.Audience}}, leeway)
}

// owner returns the principal of the claims, with the scopes that both the token and
// the configuration allow.
func (v *verifier) owner(c *claims, others map[string]any) (*principal, []streamable.Scope, error) {
	subject, _ := others[v.oauth.Claim].(string)
	if v.oauth.Claim == "email" && c.EmailVerified != true {
		return nil, nil, forbidden(errors.New("the email of the token is not verified"))
	}
	who := v.subjects[subject]
	if subject == "" || who == nil {
		return nil, nil, forbidden(errors.New("the token is of no principal"))
	}
	scopes := []streamable.Scope{}
	given := streamable.ParseScopes(scopeText(c))
	for _, scope := range who.scopes {
		if slices.Contains(given, scope) {
			scopes = append(scopes, scope)
		}
	}
	return who, scopes, nil
}

// scopeText returns the scopes of a token as text: scope (RFC 9068), else scp, which
// some servers have instead, as a text or a list.
func scopeText(c *claims) string {
	if c.Scope != nil {
		text, _ := c.Scope.(string)
		return text
	}
	switch scp := c.Scp.(type) {
	case string:
		return scp
	case []any:
		var words []string
		for _, v := range scp {
			if word, ok := v.(string); ok {
				words = append(words, word)
			}
		}
		return strings.Join(words, " ")
	}
	return ""
}

// invalid refuses a token. The cause goes to the log; the answer does not have it.
func invalid(err error) error {
	return &streamable.Refusal{Code: "invalid_token", Err: fmt.Errorf("access token: %w", err)}
}

// unavailable reports whether the refusal is not the fault of the client.
func unavailable(err error) bool {
	var why *streamable.Refusal
	return errors.As(err, &why) && why.Status == http.StatusServiceUnavailable
}

// forbidden refuses a valid token whose owner is not a user of this server.
func forbidden(err error) error {
	return &streamable.Refusal{Status: http.StatusForbidden, Words: "you are not a user of this server", Err: err}
}
