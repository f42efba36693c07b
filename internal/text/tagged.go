package text

import "strings"

// Tagged returns a text between the tags of a name, for a message to a model. Only the last one closes: what looks like a tag
// of that name in the text, which may come from a program or a repository, gets a backslash behind its <.
func Tagged(name, body string) string {
	var b strings.Builder
	b.WriteString("<" + name + ">\n")
	for {
		before, after, found := strings.Cut(body, "<")
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteByte('<')
		if rest := strings.TrimLeft(after, " \t\r\n/"); len(rest) >= len(name) &&
			strings.EqualFold(rest[:len(name)], name) {
			b.WriteByte('\\')
		}
		body = after
	}
	b.WriteString("\n</" + name + ">")
	return b.String()
}
