// Package web reads single pages of the web as text, for a model that must not choose what this
// machine connects to:
//
//	webaddr.Address ──▶ Client.Get ──▶ Page
//
// A [Client] sends a GET request without cookies, credentials or a referrer. It connects only to
// public addresses, which it checks when it connects, and to private ones that are listed as
// addresses. It bounds time, bytes and redirects. Whether an address may be fetched at all is
// decided elsewhere, by package policy.
package web
