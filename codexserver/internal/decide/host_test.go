package decide_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHost has names as commands and rules write them. What is no name of a host is "".
func TestHost(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 36)
	for name, want := range map[string]string{
		"example.com": "example.com", "Example.COM": "example.com", "example.com.": "example.com", "a-b.c_d.e": "a-b.c_d.e",
		"xn--ls8h.example": "xn--ls8h.example", "1.2.3.example": "1.2.3.example", long: long, "4chan.org": "4chan.org", "a.b1": "a.b1",
		"": "", ".": "", "com": "", "localhost": "", "com.": "", "a..b": "", ".a.b": "", "a.b..": "", long + "b": "", strings.Repeat("a", 64) + ".b": "",
		"127.0.0.1": "", "127.1": "", "2130706433": "", "0x7f.1": "", "0x7f000001": "", "1.0x7f000001": "", "017700000001": "", "127.0.0.1.": "",
		"::1": "", "[::1]": "", "fe80::1%eth0": "", "1.2.3.4.5": "", "a.1": "",
		"exàmple.com": "", "exam\u200bple.com": "", "example\u3002com": "", "\u212a.com": "", "a b.com": "", "a.com\n": "", "a.com/": "", "a.com:443": "", "a@b.com": "", "*.com": "", "\x00.com": "",
	} {
		got, err := decide.Host(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
}

// TestHostPatterns has the hosts of rules, and what they cover.
func TestHostPatterns(t *testing.T) {
	t.Parallel()
	for pattern, hosts := range map[string][2]string{
		"registry.npmjs.org": {"registry.npmjs.org", "npmjs.org a.registry.npmjs.org registry.npmjs.org.example.com xregistry.npmjs.org"},
		"*.npmjs.org":        {"registry.npmjs.org a.b.npmjs.org", "npmjs.org xnpmjs.org npmjs.org.example.com"},
		"*.NPMjs.org.":       {"registry.npmjs.org", "npmjs.org"},
	} {
		checked := must.Get(decide.HostPattern(pattern))(t)
		for i, all := range hosts {
			for host := range strings.FieldsSeq(all) {
				must.Equal(t, pattern+" covers "+host, i == 0, decide.CoversHost([]string{"other.example.com", checked}, host))
			}
		}
	}
	for _, wrong := range []string{"", "*", "*.", "*.com", "*.*.com", "a.*.com", "*npmjs.org", "https://a.com", "a.com:443", "10.0.0.1", "localhost", "**.a.com"} {
		if got, err := decide.HostPattern(wrong); err == nil {
			t.Errorf("%q is the pattern %q", wrong, got)
		}
	}
}
