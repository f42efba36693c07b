package webaddr_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"docs.example.com", "https://docs.example.com/"},
		{" https://Docs.Example.COM./a ", "https://docs.example.com/a"},
		{"HTTPS://example.com:443/", "https://example.com/"},
		{"http://example.com:80", "http://example.com/"},
		{"http://example.com:0443/", "http://example.com:443/"},
		{"example.com:8443/x", "https://example.com:8443/x"},
		{"example.com/to?u=http://other.example", "https://example.com/to?u=http://other.example"},
		{"https://example.com/a#secret", "https://example.com/a"},
		{"https://example.com/a b\u200bc`d'\"?q=\u202e x'`&y=\\{%00}%zz", "https://example.com/a%20b%E2%80%8Bc%60d%27%22?q=%E2%80%AE%20x%27%60&y=%5C%7B%00%7D%zz"},
		{"https://example.com/a%2Fb/../c", "https://example.com/a%2Fb/../c"},
		{"https://z9.Z_example-a.az/?\"<>", "https://z9.z_example-a.az/?%22%3C%3E"},
		{"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"},
		{"https://[2606:4700:0::1111]/", "https://[2606:4700::1111]/"},
		{"https://[::FFFF:127.0.0.1]:8080/", "https://[::ffff:127.0.0.1]:8080/"},
		{"https://1.1.1.1/", "https://1.1.1.1/"},
		// Errors, by a part of them.
		{"", "! names no host"},
		{"/3/library", "! names no host"},
		{"https:///x", "! names no host"},
		{"//example.com", "! names no host"},
		{"ftp://example.com", "! knows no addresses with ftp:"},
		{"file:///etc/passwd", "! knows no addresses with file:"},
		{"javascript:alert(1)", "! cannot be read"},
		{"https://user@example.com", "! user name or a password"},
		{"https://example.com:443@evil.example/", "! user name or a password"},
		{`https://example.com\@evil.example/`, "! "},
		{"https://exa\u0000mple.com", "! cannot be read"},
		{"https://example.com/\n", "https://example.com/"},
		{"https://example.com/\nx", "! cannot be read"},
		{"https://b\u00fccher.example/", "! other than ASCII"},
		{"https://ex\u0430mple.com/", "! other than ASCII"},
		{"https://b%C3%BCcher.example/", "! other than ASCII"},
		{"https://exa%6dple.com/", "!"},
		{"https://a..b", "! empty part"},
		{"https://" + strings.Repeat("a", 63) + ".com", "https://" + strings.Repeat("a", 63) + ".com/"},
		{"https://" + strings.Repeat("a", 64) + ".com", "! too long"},
		{"https://" + strings.Repeat("a.", 125) + "com", "https://" + strings.Repeat("a.", 125) + "com/"},
		{"https://" + strings.Repeat("a.", 125) + "info", "! too long"},
		{"https://ex ample.com", "! cannot be read"},
		{"https://example.com:0/", "! port that does not exist"},
		{"https://example.com:65536/", "! port that does not exist"},
		{"https://[fe80::1%25eth0]/", "! IPv6"},
		{"https://[1.1.1.1]/", "! cannot be read"},
		{"https://example.com/" + strings.Repeat("a", 980), "https://example.com/" + strings.Repeat("a", 980)},
		{"https://example.com/" + strings.Repeat("a", 981), "! at most 1000"},
		{"https://example.com/" + strings.Repeat("\u20ac", 108) + "aaaaaaaa", "https://example.com/" + strings.Repeat("%E2%82%AC", 108) + "aaaaaaaa"},
		{"https://example.com/" + strings.Repeat("\u20ac", 108) + "aaaaaaaaa", "! at most 1000"},
		{strings.Repeat(" ", 1000) + "example.com", "! at most 1000"},
		{"https://example.com/" + strings.Repeat("\u20ac", 200), "! at most 1000"},
		{"http://2130706433/", "! neither a name nor an IPv4 address"},
		{"http://127.1/", "! neither"},
		{"http://0x7f000001/", "! neither"},
		{"http://0177.0.0.1/", "! neither"},
		{"http://127.0.0.01/", "! neither"},
		{"http://127.0.0.0x1/", "! neither"},
		{"http://example.7/", "! neither"},
		{"http://example.9a/", "! neither"},
		{"https://a!b.example/", "! a character that names do not have"},
		{"https://a;b.example/", "! a character that names do not have"},
		{"https://a~b.example/", "! a character that names do not have"},
	} {
		a, err := webaddr.Parse(tt.text)
		got := a.String()
		if err != nil {
			got = "! " + err.Error()
		}
		if part, fails := strings.CutPrefix(tt.want, "!"); err != nil != fails || fails && !strings.Contains(got, strings.TrimSpace(part)) || !fails && got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

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

func FuzzParse(f *testing.F) {
	for _, text := range []string{"example.com", "https://u:p@[::1]:8080/%2e%2e/?a=\u202eb#c", "http://127.1", "a:b://c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := webaddr.Parse(text)
		if err != nil {
			return
		}
		shown := a.String()
		for i := range len(shown) {
			if c := shown[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("'\"`\\", c) >= 0 {
				t.Fatalf("%q has %q", shown, c)
			}
		}
		if again, err := webaddr.Parse(shown); err != nil || again != a || len(shown) > webaddr.MaxAddress {
			t.Errorf("%q became %q, then %q (%v)", text, shown, again, err)
		}
	})
}

func TestHosts(t *testing.T) {
	hosts, err := webaddr.ParseHosts([]string{"Docs.example.com", "*.example.org", "example.net:8443", "http://plain.example", "http://127.0.0.1:8080", "https://[::1]:3000", "http://*.below.example:81"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"https://docs.example.com/x?y": true, "http://docs.example.com": false, "https://docs.example.com:8443": false,
		"https://example.com": false, "https://a.docs.example.com": false, "https://docs.example.com.evil.example": false, "https://xdocs.example.com": false,
		"https://a.example.org": true, "https://a.b.example.org": true, "https://example.org": false, "https://aexample.org": false, "http://a.example.org": false,
		"https://example.net:8443": true, "https://example.net": false,
		"http://plain.example": true, "https://plain.example": false,
		"http://127.0.0.1:8080/": true, "http://127.0.0.1": false, "https://127.0.0.1:8080": false, "http://127.0.0.2:8080": false, "http://[::ffff:127.0.0.1]:8080": false,
		"https://[::1]:3000": true, "https://[::1]": false,
		"http://a.below.example:81": true, "http://a.below.example": false,
	} {
		a, err := webaddr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hosts.Has(a); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	for _, text := range []string{"", "*", "*.", "*.com", "*.1.1.1.1", "a.*.example.com", "example.com/docs", "example.com?x", "example.com#x", "a b.example", "ftp://example.com", "u@example.com", "localhost", "localhost:3000", "a.localhost", "db.internal", "127.1", "b\u00fccher.example"} {
		if hosts, err := webaddr.ParseHosts([]string{"example.com", text}); err == nil {
			t.Errorf("%q is accepted: %v", text, hosts)
		}
	}
}

func TestPublic(t *testing.T) {
	for text := range strings.FieldsSeq(`1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 192.0.1.1 2606:4700::1111 2a00:1450:4001::1 2001:200::1`) {
		if !webaddr.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	for text := range strings.FieldsSeq(`
		0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1
		172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
		239.255.255.250 240.0.0.1 255.255.255.255
		:: ::1 ::127.0.0.1 ::ffff:1.1.1.1 ::ffff:127.0.0.1 64:ff9b::1.1.1.1 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:10::1
		2001:db8::1 2002:7f00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 2606:4700::1%x fec0::1 ff02::1 4000::1`) {
		if webaddr.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
}

func parse(t *testing.T, text string) webaddr.Address {
	t.Helper()
	a, err := webaddr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFollows checks which redirects stay at a host.
func TestFollows(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"https://a.example/x", "https://a.example/y?z", true},
		{"http://a.example:8080/x", "http://a.example:8080/y", true},
		{"http://a.example/", "https://a.example/", true},
		{"https://a.example/", "http://a.example/", false},
		{"http://a.example:8080/", "https://a.example/", false},
		{"http://a.example/", "https://a.example:8443/", false},
		{"http://a.example:443/", "https://a.example/", false},
		{"https://a.example:80/", "https://a.example/", false},
		{"https://a.example/", "https://a.example:80/", false},
		{"http://a.example/", "http://a.example:443/", false},
		{"https://a.example/", "https://b.example/", false},
		{"http://a.example/", "https://b.example/", false},
		{"https://a.example/", "https://www.a.example/", false},
	} {
		if got := parse(t, tt.from).Follows(parse(t, tt.to)); got != tt.want {
			t.Errorf("%s to %s: %t", tt.from, tt.to, got)
		}
	}
}

func TestResolve(t *testing.T) {
	base := parse(t, "https://a.example:8443/dir/page?q")
	for link, want := range map[string]string{
		"x": "https://a.example:8443/dir/x", " /y ": "https://a.example:8443/y", "../z?a=b#c": "https://a.example:8443/z?a=b", "?r": "https://a.example:8443/dir/page?r",
		"//b.example/": "https://b.example/", "http://c.example": "http://c.example/", "": base.String(), "x://d": "", "mailto:a@b.example": "", "javascript:alert(1)": "",
		"https://u:p@a.example/": "", "http://127.1/": "", "/%zz": "", strings.Repeat("a", 1001): "",
		strings.Repeat("../", 333) + "x": "https://a.example:8443/x", strings.Repeat("../", 333) + "xy": "",
	} {
		got, err := base.Resolve(link)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v", link, got, err)
		}
	}
}

func TestParts(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/":          "a.example invalid IP 443 true false",
		"http://a.example":            "a.example invalid IP 80 false false",
		"http://127.0.0.1:8080":       "127.0.0.1 127.0.0.1 8080 false true",
		"https://[2606:4700::1111]":   "2606:4700::1111 2606:4700::1111 443 true false",
		"https://1.1.1.1":             "1.1.1.1 1.1.1.1 443 true false",
		"https://localhost":           "localhost invalid IP 443 true true",
		"https://intranet":            "intranet invalid IP 443 true true",
		"https://a.localhost":         "a.localhost invalid IP 443 true true",
		"https://printer.local":       "printer.local invalid IP 443 true true",
		"https://metadata.x.internal": "metadata.x.internal invalid IP 443 true true",
		"https://local.example":       "local.example invalid IP 443 true false",
	} {
		a := parse(t, text)
		if got := fmt.Sprint(a.Host(), " ", a.IP(), " ", a.Port(), " ", a.TLS(), " ", a.Nearby()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
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
