package mcp

import "testing"

func TestFilePath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///repo/a%20b":      "/repo/a b",
		"file://localhost/work":   "/work",
		"file://elsewhere/work":   "",
		"https://example.com/":    "",
		"file:relative":           "",
		"":                        "",
		"file:///repo/../etc/%zz": "",
	} {
		got, ok := filePath(uri)
		if got != want && ok || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", uri, got, ok, want)
		}
	}
}
