package web

import (
	"html"
	"strings"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// token is a piece of HTML: a text, or a tag with the attributes that matter here.
type token struct {
	text string // with character references; "" for a tag
	tag  string // in lower case
	end  bool   // of an element
	// The attributes.
	href, alt, start string
	hidden           bool
	empty            bool // the tag ends with />, which means something only in XHTML
}

// tokens splits HTML as browsers do where that matters for the text. It reads each byte at most
// twice. What is not closed, a comment or a tag, goes to the end of the page.
type tokens struct {
	in string
	at int
}

// next returns the next token; ok is false at the end.
func (s *tokens) next() (t token, ok bool) {
	rest := s.in[s.at:]
	switch {
	case rest == "":
		return t, false
	case rest[0] != '<':
		n := strings.IndexByte(rest, '<')
		if n < 0 {
			n = len(rest)
		}
		s.at += n
		return token{text: rest[:n]}, true
	case strings.HasPrefix(rest, "<!--"):
		s.skip(2, "-->")
		return t, true
	case len(rest) > 1 && isLetter(rest[1]):
		s.at++
		return s.tag(token{}), true
	case len(rest) > 2 && rest[1] == '/' && isLetter(rest[2]):
		s.at += 2
		return s.tag(token{end: true}), true
	case len(rest) > 1 && strings.IndexByte("!?/", rest[1]) >= 0:
		s.skip(1, ">")
		return t, true
	}
	s.at++
	return token{text: "&lt;"}, true
}

// skip goes behind the next end, which is at or after some bytes, or to the end of the page.
func (s *tokens) skip(from int, end string) {
	i := strings.Index(s.in[s.at+from:], end)
	if i < 0 {
		s.at = len(s.in)
		return
	}
	s.at += from + i + len(end)
}

// raw returns the content of an element in which there are no tags, up to its end tag.
func (s *tokens) raw(name string) string {
	begin := s.at
	for {
		i := strings.Index(s.in[s.at:], "</")
		if i < 0 {
			s.at = len(s.in)
			return s.in[begin:]
		}
		s.at += i + 2
		rest := s.in[s.at:]
		if len(rest) > len(name) && strings.EqualFold(rest[:len(name)], name) && strings.IndexByte(" \t\n\f\r/>", rest[len(name)]) >= 0 {
			content := s.in[begin : s.at-2]
			s.skip(0, ">")
			return content
		}
	}
}

// tag reads a tag from its name on.
func (s *tokens) tag(t token) token {
	t.tag = strings.ToLower(s.until(" \t\n\f\r/>"))
	for {
		for s.at < len(s.in) && strings.IndexByte(" \t\n\f\r/", s.in[s.at]) >= 0 {
			s.at++
		}
		if s.at == len(s.in) {
			return token{} // it has no end, and is none
		}
		if s.in[s.at] == '>' {
			t.empty = s.in[s.at-1] == '/'
			s.at++
			return t
		}
		begin := s.at
		s.at++ // the name may begin with =
		s.until(" \t\n\f\r/>=")
		name, value := s.in[begin:s.at], ""
		s.blanks()
		if s.at < len(s.in) && s.in[s.at] == '=' {
			s.at++
			s.blanks()
			value = s.value()
		}
		t.attribute(strings.ToLower(name), value)
	}
}

func (s *tokens) blanks() {
	for s.at < len(s.in) && strings.IndexByte(" \t\n\f\r", s.in[s.at]) >= 0 {
		s.at++
	}
}

// until returns what is before the next of some bytes, or the rest.
func (s *tokens) until(ends string) string {
	rest := s.in[s.at:]
	n := strings.IndexAny(rest, ends)
	if n < 0 {
		n = len(rest)
	}
	s.at += n
	return rest[:n]
}

// value reads the value of an attribute.
func (s *tokens) value() string {
	if s.at == len(s.in) || s.in[s.at] != '"' && s.in[s.at] != '\'' {
		return s.until(" \t\n\f\r>")
	}
	quote := s.in[s.at : s.at+1]
	s.at++
	value := s.until(quote)
	s.at = min(s.at+1, len(s.in))
	return value
}

// attribute keeps an attribute that matters, the first of each name.
func (t *token) attribute(name, value string) {
	switch name {
	case "href":
		if t.href == "" {
			t.href = html.UnescapeString(value[:min(len(value), 2*webaddr.MaxAddress)])
		}
	case "alt":
		if t.alt == "" {
			t.alt = value
		}
	case "start":
		t.start = value
	case "hidden":
		t.hidden = true
	case "aria-hidden":
		t.hidden = t.hidden || value == "true"
	case "style":
		style := strings.ToLower(strings.Join(strings.Fields(html.UnescapeString(value)), "")) + ";"
		for _, sign := range []string{"display:none", "visibility:hidden", "opacity:0;", "font-size:0;", "font-size:0px;"} {
			t.hidden = t.hidden || strings.Contains(style, sign)
		}
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
