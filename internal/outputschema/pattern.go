package outputschema

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pattern is a regular expression whose steps are counted.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// newPattern compiles a pattern of ECMAScript, and counts its instructions.
func newPattern(text string) (*pattern, error) {
	text = goPattern(text)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	r, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{r, len(program.Inst)}, nil
}

func (p *pattern) match(r *run, text string) bool {
	r.take((len(text) + 1) * p.size)
	return p.MatchString(text)
}

// The characters that ECMAScript's \s matches, and those that it does not, as parts of a class of Go, whose \s is only
// of ASCII.
const (
	spaces    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	notSpaces = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-` +
		`\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// goPattern returns a pattern of ECMAScript, with its flag u, in the words of Go.
func goPattern(text string) string {
	var b strings.Builder
	class := false // within [ and ]
	for text != "" {
		token, is := text[:1], text[:1]
		switch {
		case strings.HasPrefix(text, `\u`):
			token, is = unicodeEscape(text)
		case text[0] == '\\' && len(text) > 1:
			token = text[:2]
			is = token
			switch {
			case token == `\s` && class:
				is = spaces
			case token == `\S` && class:
				is = notSpaces
			case token == `\s`:
				is = "[" + spaces + "]"
			case token == `\S`:
				is = "[^" + spaces + "]"
			}
		case text[0] == '[' && class:
			is = `\[` // in Go [: may begin the name of a class
		case strings.HasPrefix(text, "[]"):
			token, is = "[]", `[^\x00-\x{10ffff}]`
		case strings.HasPrefix(text, "[^]"):
			token, is = "[^]", `[\x00-\x{10ffff}]`
		case text[0] == '.' && !class:
			is = `[^\n\r\x{2028}\x{2029}]`
		case text[0] == '[' || text[0] == ']':
			class = text[0] == '['
		}
		b.WriteString(is)
		text = text[len(token):]
	}
	return b.String()
}

// unicodeEscape returns the escape of a character at the beginning of a pattern, and what it is in Go. One that is
// wrong is not one of Go either.
func unicodeEscape(text string) (token, is string) {
	if digits, _, ok := strings.Cut(strings.TrimPrefix(text, `\u{`), "}"); ok && strings.HasPrefix(text, `\u{`) {
		return `\u{` + digits + "}", `\x{` + digits + "}"
	}
	r, ok := fourDigits(text)
	if !ok {
		return `\u`, `\u`
	}
	token = text[:6]
	if low, ok := fourDigits(text[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
		r, token = utf16.DecodeRune(r, low), text[:12]
	}
	return token, `\x{` + strconv.FormatInt(int64(r), 16) + "}"
}

// fourDigits reads an escape such as \u00e9.
func fourDigits(text string) (r rune, ok bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}
