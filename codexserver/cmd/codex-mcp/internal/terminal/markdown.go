package terminal

import "strings"

// markdown shows what is bold, code or a heading in the Markdown of a message as a terminal can, and
// everything else as it is. A message may come in pieces: what begins with a sign waits until it is
// known whether it ends with one. The zero value is at the beginning of a message.
type markdown struct {
	within bool   // a line has begun
	fenced bool   // in a block of code
	rest   string // what waits
}

// waits is how many bytes wait for the end of what a sign begins. A longer line is no heading and no
// fence, because a model that never ends one would be seen only at the end of its message.
const waits = 400

// show returns the next piece of a text, which has no control sequences. last says that no piece
// follows.
func (m *markdown) show(s *screen, text string, last bool) string {
	if !s.color {
		return text
	}
	var b strings.Builder
	for text, m.rest = m.rest+text, ""; text != ""; {
		line, after, ended := strings.Cut(text, "\n")
		whole := ended || last
		if !m.within && len(line) < waits {
			if !whole && strings.Trim(line, "#`") == "" { // it may become a heading or a fence
				m.rest = text
				break
			}
			if strings.HasPrefix(line, "```") {
				if !whole {
					m.rest = text
					break
				}
				m.fenced = !m.fenced
				b.WriteString(s.paint(dim, line))
				line = ""
			} else if title := strings.TrimLeft(line, "#"); !m.fenced && len(line)-len(title) <= 6 && title != line && strings.HasPrefix(title, " ") {
				if !whole {
					m.rest = text
					break
				}
				b.WriteString(s.paint(bold, strings.TrimSpace(title)))
				line = ""
			}
		}
		m.within = true
		if m.fenced {
			b.WriteString(line)
		} else if m.rest = m.inline(s, &b, line, whole); m.rest != "" {
			break
		}
		if !ended {
			break
		}
		b.WriteByte('\n')
		text, m.within = after, false
	}
	return b.String()
}

// inline shows a part of a line up to a sign whose end has not come, and returns the rest.
func (m *markdown) inline(s *screen, b *strings.Builder, line string, whole bool) (rest string) {
	for line != "" {
		at := strings.IndexAny(line, "*`")
		if at < 0 {
			break
		}
		b.WriteString(line[:at])
		line = line[at:]
		sign, st := "`", cyan
		if strings.HasPrefix(line, "**") {
			sign, st = "**", bold
		} else if line[0] == '*' {
			if line == "*" && !whole { // a second one may follow
				return line
			}
			sign = ""
		}
		inner, after, closed := strings.Cut(line[len(sign):], sign)
		switch {
		case sign != "" && closed && strings.TrimSpace(inner) != "" && !strings.HasPrefix(inner, " ") && !strings.HasSuffix(inner, " "):
			b.WriteString(s.paint(st, inner))
			line = after
		case sign != "" && !closed && !whole && len(line) < waits:
			return line
		default:
			n := max(1, len(sign))
			b.WriteString(line[:n])
			line = line[n:]
		}
	}
	b.WriteString(line)
	return ""
}
