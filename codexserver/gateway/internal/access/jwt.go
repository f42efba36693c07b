package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// maxJWT bounds an access token, in bytes.
	maxJWT = 16 << 10
	// leeway is how far the clocks of two machines may differ.
	leeway = 30 * time.Second
)

// algorithms are the signature algorithms that are accepted. All are asymmetric: with
// HS256 everyone who has the public key could sign.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

// claims are the claims of an access token that verify reads.
type claims struct {
	jwt.Claims
	Scope         any `json:"scope"`
	Scp           any `json:"scp"`
	EmailVerified any `json:"email_verified"`
}

// looksSigned reports whether a token has the form of a JWT.
func looksSigned(token string) bool { return len(token) <= maxJWT && strings.Count(token, ".") == 2 }

// verify checks an access token of the authorization server (RFC 9068, section 4). It returns the subject that owns the
// token, with the scopes that the token allows.
func (a *Access) verify(
	ctx context.Context, token string, subjects map[string]mcphttp.Principal,
) (nobody mcphttp.Principal, err error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return nobody, invalid(err)
	}
	header := parsed.Headers[0] // ParseSigned returns exactly one
	if _, critical := header.ExtraHeaders["crit"]; critical {
		return nobody, invalid(errors.New("crit: extensions are not supported"))
	}
	// An ID token identifies a user to the client. It does not authorize requests.
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); !strings.EqualFold(typ, "at+jwt") &&
		!strings.EqualFold(typ, "application/at+jwt") {
		return nobody, invalid(errors.New("typ is not at+jwt"))
	}
	var c claims
	// Check the issuer before the signature: a token of another issuer must not cause a
	// request for this issuer's keys.
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		return nobody, invalid(err)
	}
	if c.Issuer != a.oauth.Issuer {
		return nobody, invalid(jwt.ErrInvalidIssuer)
	}
	keys, err := a.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nobody, err
	}
	var others map[string]any
	err = errors.New("not signed with a key of the issuer")
	for _, key := range keys {
		// Use only the keys of the issuer's set. The sender writes the header, so its jwk,
		// jku and x5u are ignored.
		c, others = claims{}, nil
		if err = parsed.Claims(key.Key, &c, &others); err == nil {
			break
		}
	}
	if err == nil && c.Expiry == nil {
		err = errors.New("exp: missing")
	}
	if err == nil {
		err = c.ValidateWithLeeway(jwt.Expected{Issuer: a.oauth.Issuer, AnyAudience: jwt.Audience{a.oauth.Audience}},
			leeway)
	}
	if err != nil {
		return nobody, invalid(err)
	}
	subject, _ := others[a.oauth.Claim].(string)
	if a.oauth.Claim == "email" && c.EmailVerified != true {
		return nobody, forbidden(errors.New("email_verified of the access token is not true"))
	}
	who, known := subjects[subject]
	if subject == "" || !known {
		return nobody, forbidden(fmt.Errorf("%s of the access token is not the subject of a principal", a.oauth.Claim))
	}
	granted := mcphttp.ParseScopes(scopeText(&c))
	who.Scopes = slices.DeleteFunc(slices.Clone(who.Scopes),
		func(scope mcphttp.Scope) bool { return !slices.Contains(granted, scope) })
	return who, nil
}

// scopeText returns the scopes of a token, separated by spaces. It reads the claim scope
// (RFC 9068), or without it scp, which some servers write as a string or a list.
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

// invalid returns the refusal of a token. The log has the cause, the answer does not.
func invalid(err error) error {
	return &mcphttp.Refusal{Code: "invalid_token", Err: fmt.Errorf("access token: %w", err)}
}

// forbidden returns the refusal of a valid token whose owner is not a user of this server.
func forbidden(err error) error {
	return &mcphttp.Refusal{Status: http.StatusForbidden, Words: "you are not a user of this server", Err: err}
}
