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

// tokensAge is how long tokens count without a refresh.
const tokensAge = 28 * 24 * time.Hour

// Credentials say who is signed in. They hold secrets.
type Credentials struct {
	// Method is "" when no user is signed in.
	Method Method
	// Token goes with requests: the API key or the access token.
	Token string
	// Email is what the identity token claims, unproven; "" without one. It is set even
	// for tokens that no longer count.
	Email string
	// Stale is true when there are tokens that do not count because they were
	// not refreshed for 28 days.
	Stale bool
}

// Options are where users sign in. The zero value cannot sign in; it can still read what
// is in auth.json and keep an API key there.
type Options struct {
	// Issuer is the base address of the OAuth server, https or on loopback:
	// users are sent to ISSUER/oauth/authorize, codes and refresh tokens to
	// ISSUER/oauth/token.
	Issuer string
	// ClientID is how the server knows us.
	ClientID string
	// Port is where the browser comes back to, on localhost. 0 means the first
	// that is free of 1455, 1457 and any.
	Port int
	// HTTPClient asks the server. Default: http.DefaultClient.
	HTTPClient *http.Client
}

// Keeper keeps auth.json of one folder and the sign-in that is under way. It is
// safe for concurrent use.
type Keeper struct {
	home    string
	options Options

	// A refresh token may be good for one use: one refresh at a time.
	refreshing sync.Mutex
	file       sync.Mutex // held while auth.json is changed

	mu      sync.Mutex
	login   *login // nil when none is under way
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

// Close ends a sign-in that is under way and waits until its end has been reported.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	k.endLogin()
	k.mu.Unlock()
	k.running.Wait()
	return nil
}

// Current says who is signed in. An API key counts before tokens.
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

// SaveAPIKey signs in with an API key, which replaces whatever was in auth.json,
// and ends a sign-in that is under way.
func (k *Keeper) SaveAPIKey(key string) error {
	k.CancelAll()
	k.file.Lock()
	defer k.file.Unlock()
	return (&file{APIKey: &key}).save(k.home)
}

// Remove signs out. It succeeds if no user was signed in.
func (k *Keeper) Remove() error {
	k.CancelAll()
	k.file.Lock()
	defer k.file.Unlock()
	return remove(k.home)
}

// ErrNoTokens says that there is nothing to refresh.
var ErrNoTokens = errors.New("auth: not signed in with ChatGPT")

// Refresh asks for new tokens in exchange for the refresh token. Who has signed
// in or out meanwhile is left alone.
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
	k.file.Lock()
	defer k.file.Unlock()
	if f, err = load(k.home); err != nil {
		return err
	}
	if f.Tokens == nil || f.Tokens.RefreshToken != used {
		return nil
	}
	f.take(got)
	return f.save(k.home)
}

// take puts the server's tokens into the file. The server may leave out what stays the
// same.
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
