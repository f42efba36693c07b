package webaddr_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"https://approvals.example.com":      "https://approvals.example.com",
		"https://Approvals.example.com/":     "https://approvals.example.com",
		"https://approvals.example.com:8443": "https://approvals.example.com:8443",
		"https://[2001:db8::1]":              "https://[2001:db8::1]",
		"http://localhost:9000":              "http://localhost:9000",
		"http://127.0.0.1:9000":              "http://127.0.0.1:9000",
		"http://[::1]:9000":                  "http://[::1]:9000",
		"http://approvals.example.com":       "",
		"http://192.168.1.2:8765":            "",
		"http://localhost.example.com":       "",
		"https://approvals.example.com/page": "",
		"https://approvals.example.com//":    "",
		"https://approvals.example.com?x":    "",
		"https://approvals.example.com#x":    "",
		"https://approvals.example.com:443":  "",
		"https://approvals.example.com.":     "",
		"https://me@approvals.example.com":   "",
		"https://":                           "",
		"approvals.example.com":              "",
		"ftp://approvals.example.com":        "",
		"null":                               "",
		"*":                                  "",
		"https://*.example.com":              "",
		"https://a.example https://b":        "",
		" https://a.example":                 "",
		"":                                   "",
	} {
		if got, err := webaddr.ParseOrigin(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "a.localhost": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "127.1": false,
		"2130706433": false, "0.0.0.0": false, "::": false, "[::1]": false, "127.0.0.1:80": false, "128.0.0.1": false,
	} {
		if webaddr.Loopback(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
