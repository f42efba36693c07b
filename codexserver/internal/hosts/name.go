package hosts

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
)

// target returns the host that a request asks for. With an error, which says why it cannot be asked for, it is what the
// request has in place of one.
func target(r *http.Request) (host string, err error) {
	if r.Method != http.MethodConnect {
		return brief(r.Host), errors.New("only HTTPS is possible from the sandbox")
	}
	name, port, err := net.SplitHostPort(r.RequestURI)
	if err != nil {
		return brief(r.RequestURI), errors.New("want a host and a port")
	}
	if host, err = decide.Host(name); err != nil {
		return brief(name), err
	}
	if port != "443" {
		err = errors.New("only port 443 is possible from the sandbox")
	}
	return host, err
}

// brief returns the beginning of what a command wrote, in quotes and printable.
func brief(text string) string { return strconv.QuoteToASCII(text[:min(len(text), decide.MaxHost)]) }

// phrase returns words as they may stand in a status line.
func phrase(words string) string {
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, words)
	return words[:min(len(words), 300)]
}
