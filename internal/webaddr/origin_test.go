package webaddr_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

func TestParseOrigin(t *testing.T) {
	origins := map[string]string{"https://Approvals.example.com/": "https://approvals.example.com"}
	for _, origin := range []string{
		"https://approvals.example.com", "https://approvals.example.com:8443", "https://[2001:db8::1]", "http://localhost:9000",
		"http://127.0.0.1:9000", "http://[::1]:9000",
	} {
		origins[origin] = origin
	}
	for _, wrong := range []string{
		"http://approvals.example.com", "http://192.168.1.2:8765", "http://localhost.example.com", "https://approvals.example.com/page",
		"https://approvals.example.com//", "https://approvals.example.com?x", "https://approvals.example.com#x",
		"https://approvals.example.com:443", "https://approvals.example.com.", "https://me@approvals.example.com", "https://",
		"approvals.example.com", "ftp://approvals.example.com", "null", "*", "https://*.example.com", "https://a.example https://b",
		" https://a.example", "",
	} {
		origins[wrong] = ""
	}
	for text, want := range origins {
		if got, err := webaddr.ParseOrigin(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
