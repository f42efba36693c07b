package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-oauth2/oauth2/v4"
	oautherrors "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	oauthserver "github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
)

// authServer is an authorization server on loopback: authorization codes with PKCE for
// one public client, and access tokens that are JWTs (RFC 9068). Its user consents to
// everything at once.
type authServer struct {
	url, user string
	signer    jose.Signer
	key       *ecdsa.PrivateKey
	oauth     *oauthserver.Server

	mu     sync.Mutex
	scopes []string // asked for, in order
}

const (
	oauthClient   = "an-editor"
	oauthRedirect = "http://127.0.0.1:8765/callback"
)

func newAuthServer(t *testing.T, user string) *authServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authServer{user: user, key: key}
	a.signer, err = jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}},
		(&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	clients := store.NewClientStore()
	if err := clients.Set(oauthClient, &models.Client{ID: oauthClient, Domain: oauthRedirect, Public: true}); err != nil {
		t.Fatal(err)
	}
	m := manage.NewDefaultManager()
	m.MustTokenStorage(store.NewMemoryTokenStore())
	m.MapClientStorage(clients)
	m.MapAccessGenerate(a)
	a.oauth = oauthserver.NewServer(&oauthserver.Config{
		TokenType: "Bearer", ForcePKCE: true,
		AllowedResponseTypes:        []oauth2.ResponseType{oauth2.Code},
		AllowedGrantTypes:           []oauth2.GrantType{oauth2.AuthorizationCode},
		AllowedCodeChallengeMethods: []oauth2.CodeChallengeMethod{oauth2.CodeChallengeS256},
	}, m)
	a.oauth.SetInternalErrorHandler(func(err error) *oautherrors.Response {
		t.Errorf("the authorization server: %v", err)
		return nil
	})
	a.oauth.SetClientInfoHandler(oauthserver.ClientFormHandler)
	a.oauth.SetUserAuthorizationHandler(func(http.ResponseWriter, *http.Request) (string, error) { return a.user, nil })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.metadata)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1", Use: "sig", Algorithm: "ES256"}}})
	})
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if err := a.oauth.HandleTokenRequest(w, r); err != nil {
			t.Errorf("token request: %v", err)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a.url = s.URL
	return a
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// metadata is that of RFC 8414.
func (a *authServer) metadata(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{
		"issuer": a.url, "authorization_endpoint": a.url + "/authorize", "token_endpoint": a.url + "/token", "jwks_uri": a.url + "/keys",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"},
	})
}

func (a *authServer) authorize(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("resource") == "" {
		http.Error(w, "resource: missing (RFC 8707)", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.scopes = append(a.scopes, r.FormValue("scope"))
	a.mu.Unlock()
	if err := a.oauth.HandleAuthorizeRequest(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// asked are the scopes that clients asked for, each time sorted.
func (a *authServer) asked() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.scopes {
		words := strings.Fields(s)
		slices.Sort(words)
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// Token implements [oauth2.AccessGenerate].
func (a *authServer) Token(_ context.Context, data *oauth2.GenerateBasic, _ bool) (access, refresh string, err error) {
	resource := data.Request.FormValue("resource")
	if resource == "" {
		return "", "", errors.New("resource: missing (RFC 8707)")
	}
	now := time.Now()
	access, err = jwt.Signed(a.signer).Claims(jwt.Claims{
		Issuer: a.url, Subject: data.UserID, Audience: jwt.Audience{resource}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(5 * time.Minute)),
	}).Claims(map[string]any{"client_id": data.Client.GetID(), "scope": data.TokenInfo.GetScope()}).Serialize()
	return access, "", err
}
