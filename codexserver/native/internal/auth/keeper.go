package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// Method is how the user is signed in.
type Method string

// The methods. "" means signed out.
const (
	MethodAPIKey  Method = "apikey"
	MethodChatGPT Method = "chatgpt"
)

// tokensAge is how long tokens are valid without a refresh.
const tokensAge = 28 * 24 * time.Hour

// Credentials say who is signed in. They hold secrets.
type Credentials struct {
	// Method is "" when no user is signed in.
	Method Method
	// Token authorizes requests: the API key or the access token.
	Token string
	// Email is claimed by the identity token and not verified; "" without one. Stale
	// tokens have one too.
	Email string
	// Stale is true if there are tokens that are no longer used, because they were
	// not refreshed for 28 days.
	Stale bool
}

// Options configure where users sign in. The zero value cannot sign users in with
// ChatGPT, but auth.json can be read and an API key saved there.
type Options struct {
	// Issuer is the base address of the OAuth server, https or on loopback:
	// users are sent to ISSUER/oauth/authorize, codes and refresh tokens to
	// ISSUER/oauth/token.
	Issuer string
	// ClientID identifies this program to the OAuth server.
	ClientID string
	// Port is the port on localhost to which the browser is sent back. 0 takes the
	// first free one of 1455, 1457 and any other.
	Port int
	// HTTPClient calls the OAuth server. Default: http.DefaultClient.
	HTTPClient *http.Client
}

// Keeper manages the auth.json of one folder and the sign-in under way. It is safe
// for concurrent use.
type Keeper struct {
	home    string
	options Options

	// One refresh at a time: a refresh token may be valid only once.
	refreshing sync.Mutex

	mu      sync.Mutex // also held while auth.json is changed
	login   *login     // nil when none is under way
	closed  bool
	running sync.WaitGroup
}

// New makes the keeper of home's auth.json.
func New(home string, o *Options) *Keeper {
	k := &Keeper{home: home}
	if o != nil {
		k.options = *o
	}
	return k
}

// Close cancels a sign-in under way and waits until its done function has returned.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	k.endLogin()
	k.mu.Unlock()
	k.running.Wait()
	return nil
}

// Current returns the credentials of the user who is signed in. An API key takes
// precedence over tokens.
func (k *Keeper) Current() (Credentials, error) {
	f, err := load(k.home)
	if err != nil {
		return Credentials{}, err
	}
	var c Credentials
	if f.Tokens != nil {
		c.Email = email(f.Tokens.IDToken)
	}
	switch {
	case f.APIKey != nil && *f.APIKey != "":
		c.Method, c.Token = MethodAPIKey, *f.APIKey
	case f.Tokens == nil || f.Tokens.AccessToken == "":
	case f.LastRefresh == nil || time.Since(*f.LastRefresh) > tokensAge:
		c.Stale = true
	default:
		c.Method, c.Token = MethodChatGPT, f.Tokens.AccessToken
	}
	return c, nil
}

// SaveAPIKey signs in with an API key. It replaces the whole auth.json, and cancels a
// sign-in under way.
func (k *Keeper) SaveAPIKey(key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLogin()
	return (&file{APIKey: &key}).save(k.home)
}

// Remove signs out. It also succeeds if no user was signed in.
func (k *Keeper) Remove() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLogin()
	return remove(k.home)
}

// ErrNoTokens is returned if there are no tokens to refresh.
var ErrNoTokens = errors.New("auth: not signed in with ChatGPT")

// Refresh exchanges the refresh token for new tokens. It drops them if the user has
// signed in or out meanwhile.
func (k *Keeper) Refresh(ctx context.Context) error {
	if err := k.configured(); err != nil {
		return err
	}
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	f, err := load(k.home)
	if err != nil {
		return err
	}
	if f.Tokens == nil || f.Tokens.RefreshToken == "" {
		return ErrNoTokens
	}
	used := f.Tokens.RefreshToken
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	got, err := k.oauth("").TokenSource(k.client(ctx), &oauth2.Token{RefreshToken: used}).Token()
	if err != nil {
		return worded(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f, err = load(k.home); err != nil {
		return err
	}
	if f.Tokens == nil || f.Tokens.RefreshToken != used {
		return nil
	}
	f.take(got)
	return f.save(k.home)
}

// take puts the server's tokens into the file. A token that the server left out stays.
func (f *file) take(got *oauth2.Token) {
	if f.Tokens == nil {
		f.Tokens = &tokens{}
	}
	t := f.Tokens
	t.AccessToken = got.AccessToken
	if got.RefreshToken != "" {
		t.RefreshToken = got.RefreshToken
	}
	if id, ok := got.Extra("id_token").(string); ok && id != "" {
		t.IDToken = id
	}
	if id := accountID(t.IDToken); id != "" {
		t.AccountID = &id
	}
	now := time.Now().UTC()
	f.LastRefresh = &now
}
