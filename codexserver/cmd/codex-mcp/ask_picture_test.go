//go:build terminal

package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	pictureRows  = 32
	pictureWidth = 80*9 + 32 // pixels; 80 characters of most fonts are narrower
	lineHeight   = 18        // pixels
	frameSeconds = 4
)

// colours are the colours of SGR codes 30 to 37 on a dark terminal.
var colours = [8]string{"#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3"}

// style is the state that SGR codes have set.
type style struct {
	bold, faint bool
	colour      string
}

// set applies the codes of one escape sequence.
func (s *style) set(codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		n, _ := strconv.Atoi(code) // an empty code is 0
		switch {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 22:
			s.bold, s.faint = false, false
		case n >= 30 && n <= 37:
			s.colour = colours[n-30]
		case n == 39:
			s.colour = ""
		}
	}
}

// span is the text in that style.
func (s style) span(text string) string {
	attributes := ""
	if s.colour != "" {
		attributes += ` fill="` + s.colour + `"`
	}
	if s.bold {
		attributes += ` font-weight="bold"`
	}
	if s.faint {
		attributes += ` fill-opacity="0.6"` // opacity is for whole texts only
	}
	return "<tspan" + attributes + ">" + strings.ReplaceAll(html.EscapeString(text), " ", "\u00a0") + "</tspan>"
}

// TestTerminalPicture checks that without its styles the picture is the last screen.
func TestTerminalPicture(t *testing.T) {
	svg := animation([]string{"one", "two", "\x1b[2mthree\x1b[0m"})
	plain := regexp.MustCompile(`(?s)<style>.*</style>\n`).ReplaceAllString(svg, "")
	shown := regexp.MustCompile(`(?s)<g [^>]*visibility="hidden">.*?</g>\n`).ReplaceAllString(plain, "")
	if svg == plain || strings.Count(shown, "<text ") != 1 || !strings.Contains(shown, `fill-opacity="0.6">three<`) {
		t.Errorf("without styles:\n%s", shown)
	}
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// animation returns an SVG that shows the screens one after another, again and again. Programs that
// ignore styles or do not animate, and users who prefer reduced motion, see only the last one.
func animation(screens []string) string {
	var b strings.Builder
	width, height := pictureWidth, pictureRows*lineHeight+40
	total := frameSeconds * (len(screens) + 1) // the last one stays for two
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">`+"\n", width, height)
	b.WriteString("<title>codex-mcp ask in a terminal: a task, two questions that a person approves, the result</title>\n<style>\n")
	fmt.Fprintf(&b, "@media (prefers-reduced-motion: no-preference) {\n  .screen { visibility: hidden; animation: %ds step-end infinite; }\n", total)
	for i := range screens {
		fmt.Fprintf(&b, "  .s%d { animation-name: s%d; }\n", i, i)
	}
	b.WriteString("}\n")
	for i := range screens {
		begin := 100 * frameSeconds * i / total
		end := fmt.Sprintf("%d%%", 100*frameSeconds*(i+1)/total)
		if i == len(screens)-1 {
			end = "100%"
		}
		before := ""
		if begin > 0 {
			before = "0% { visibility: hidden; } "
		}
		fmt.Fprintf(&b, "@keyframes s%d { %s%d%% { visibility: visible; } %s { visibility: hidden; } }\n", i, before, begin, end)
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", width, height)
	for i, screen := range screens {
		hidden := ""
		if i < len(screens)-1 {
			hidden = ` visibility="hidden"` // unless the styles say something else
		}
		fmt.Fprintf(&b, "<g class=\"screen s%d\" fill=\"#e6edf3\"%s>\n", i, hidden)
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		lines = lines[max(len(lines)-pictureRows, 0):]
		var s style
		for row, line := range lines {
			text := ""
			for line != "" {
				at := sgr.FindStringSubmatchIndex(line)
				if at == nil {
					text += s.span(line)
					break
				}
				if at[0] > 0 {
					text += s.span(line[:at[0]])
				}
				s.set(line[at[2]:at[3]])
				line = line[at[1]:]
			}
			if text != "" {
				fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\">%s</text>\n", 32+row*lineHeight, text)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// coloured returns [pane.recording] with its colours.
func (p *pane) coloured() string {
	p.t.Helper()
	return p.stable(p.shows("-e"))
}

// keepPicture compares docs/use/ask.svg with the screens; -update writes it.
func keepPicture(t *testing.T, screens []string) {
	t.Helper()
	file := filepath.Join(root, "docs", "use", "ask.svg")
	now := animation(screens)
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(was), now); diff != "" {
		t.Errorf("%s (-file +now):\n%s", file, diff)
	}
}
