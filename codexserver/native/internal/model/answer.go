package model

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json/jsontext"
)

// A server without the parser of its model leaves the model's markup in the text of a message: thinking in tags, and
// calls of tools. Neither is an answer.

// thinkTags are the tags of thinking, with models that write them.
var thinkTags = []struct{ open, closed string }{
	{"<think>", "</think>"},                                    // Qwen, DeepSeek, MiniMax, GLM
	{"<thinking>", "</thinking>"},                              // Claude, when it is asked to
	{"<thought>", "</thought>"},                                // Gemini, behind gateways
	{"<reasoning>", "</reasoning>"},                            // Exaone, prompts
	{"<seed:think>", "</seed:think>"},                          // Seed
	{"<longcat_think>", "</longcat_think>"},                    // LongCat
	{"<|START_THINKING|>", "<|END_THINKING|>"},                 // Command
	{"<|begin_of_thought|>", "<|end_of_thought|>"},             // Sky
	{"<|thinking|>", "<|/thinking|>"}, {"[THINK]", "[/THINK]"}, // Apriel; Magistral
	{"◁think▷", "◁/think▷"},                       // Kimi
	{"<|channel>thought", "<channel|>"},           // Gemma 4
	{"<|channel|>analysis<|message|>", "<|end|>"}, // gpt-oss
}

// answerTags stand around the answer that follows thinking.
var answerTags = []struct{ open, closed string }{
	{"<answer>", "</answer>"}, {"<response>", "</response>"}, {"<|begin_of_solution|>", "<|end_of_solution|>"},
	{"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
	{"<|start|>assistant<|channel|>final<|message|>", "<|return|>"}, {"<|channel|>final<|message|>", "<|return|>"},
}

const blank = " \t\r\n"

// maxThoughts is how many thoughts may stand one after another.
const maxThoughts = 100

// Answer returns the text of a message without the thinking in tags at its beginning. A tag that the text only speaks of,
// in code, in quotes or further on, stays.
func Answer(text string) string {
	rest, thought := opened(text)
	if !thought {
		rest, thought = untagged(text)
	}
	if !thought {
		return text
	}
	for more, n := true, 0; more && n < maxThoughts; n++ { // it may think again
		if rest, more = opened(rest); more {
			continue
		}
		for _, tag := range thinkTags { // or close its tag once more
			if after, closed := strings.CutPrefix(rest, tag.closed); closed {
				rest, more = strings.TrimLeft(after, blank), true
			}
		}
	}
	for _, tag := range answerTags {
		if answer, is := strings.CutPrefix(rest, tag.open); is {
			return strings.TrimSpace(strings.TrimSuffix(strings.TrimRight(answer, blank), tag.closed))
		}
	}
	return rest
}

// Thinks reports whether an [Answer] is thinking in tags that has no end: the model was cut off in it.
func Thinks(answer string) bool {
	begin := strings.TrimLeft(answer, blank)
	return slices.ContainsFunc(thinkTags, func(tag struct{ open, closed string }) bool {
		return len(begin) >= len(tag.open) && strings.EqualFold(begin[:len(tag.open)], tag.open)
	})
}

// opened returns what follows thinking whose tag opens a text. Its own tag closes it, outside of code if it can, else that of
// another one.
func opened(text string) (rest string, is bool) {
	begin := strings.TrimLeft(text, blank)
	for _, tag := range thinkTags {
		if len(begin) < len(tag.open) || !strings.EqualFold(begin[:len(tag.open)], tag.open) {
			continue
		}
		thought := begin[len(tag.open):]
		end := cmp.Or(behind(thought, tag.closed, false), behind(thought, tag.closed, true))
		for _, other := range thinkTags {
			if end == 0 {
				end = behind(thought, other.closed, false)
			}
		}
		if end > 0 {
			return strings.TrimLeft(thought[end:], blank), true
		}
	}
	return text, false
}

// behind returns where a text goes on behind the first of a tag that is not in code, or of any, 0 without one.
func behind(text, tag string, any bool) int {
	in := code{text: text}
	for at := 0; ; {
		next := index(text[at:], tag)
		if next < 0 {
			return 0
		}
		if at += next + len(tag); any || !in.at(at-len(tag)) {
			return at
		}
	}
}

// untagged returns what follows thinking of which a text has only the closing tag, because the request ended with the opening
// one, as those of some templates do.
func untagged(text string) (rest string, is bool) {
	first := len(text) // where a tag opens
	for _, tag := range thinkTags {
		if at := index(text[:first], tag.open); at >= 0 {
			first = at
		}
	}
	for _, tag := range thinkTags {
		at := index(text, tag.closed)
		if at < 0 || at >= first || !strings.Contains(strings.ToLower(tag.closed), "think") {
			continue
		}
		if after := text[at+len(tag.closed):]; !inCode(text[:at]) && !quoted(text[:at], after) {
			return strings.TrimLeft(after, blank), true
		}
	}
	return text, false
}

// index is [strings.Index] for a tag, whose letters may be large or small.
func index(text, tag string) int {
	for at := 0; ; {
		next := strings.IndexByte(text[at:], tag[0])
		if next < 0 || at+next+len(tag) > len(text) {
			return -1
		}
		if at += next; strings.EqualFold(text[at:at+len(tag)], tag) {
			return at
		}
		at++
	}
}

// inCode reports whether a text ends within a fence of Markdown, or within a span of code.
func inCode(text string) bool { return (&code{text: text}).at(len(text)) }

// code follows where a text is within a fence of Markdown, or within a span of code. It reads the text once.
type code struct {
	text        string
	next        int // what comes before has been read
	line, bare  int // where the line of that begins, and where its first character is that is no blank
	fence, open string
	rest        bool // the line is that of a fence
}

// at reports whether a place is in code. No place is before the last one.
func (c *code) at(place int) bool {
	for c.next < place {
		if c.next == c.line {
			c.begin()
		}
		rest := c.text[c.next:place]
		n := strings.IndexAny(rest, "`\n")
		if n < 0 {
			n = len(rest)
		}
		c.next += n
		if rest = rest[n:]; rest == "" {
			break
		}
		if rest[0] == '\n' {
			c.next++
			c.line = c.next
			continue
		}
		run := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
		switch c.next += len(run); {
		case c.rest:
		case c.open == "":
			c.open = run
		case c.open == run:
			c.open = ""
		}
	}
	if c.next > c.line && place <= c.bare { // a span ends with its paragraph
		return c.fence != ""
	}
	return c.fence != "" || c.open != ""
}

// begin reads the beginning of a line.
func (c *code) begin() {
	left, _, _ := strings.Cut(c.text[c.line:], "\n")
	blanks := len(left) - len(strings.TrimLeftFunc(left, unicode.IsSpace))
	if c.bare, c.rest = c.line+blanks, false; blanks == len(left) {
		c.open = ""
	}
	if bare := strings.TrimLeft(left, " \t>"); strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
		if c.rest, c.open = true, ""; c.fence == "" {
			c.fence = bare[:3]
		} else if strings.HasPrefix(bare, c.fence) {
			c.fence = ""
		}
	}
}

// quoted reports whether what stands between two texts is in quotes.
func quoted(before, after string) bool {
	return slices.ContainsFunc([]string{`"`, "'", "“", "‘", "«", "(", "`"},
		func(mark string) bool { return strings.HasSuffix(before, mark) }) &&
		slices.ContainsFunc([]string{`"`, "'", "”", "’", "»", ")", "`"},
			func(mark string) bool { return strings.HasPrefix(after, mark) })
}

// textCalls match a call that a server left in the text, from its begin to the end of the message; a group has the name of the
// tool. The comments name models that write so.
var textCalls = []lazyregexp.Regexp{
	// Hermes, Qwen, Llama 3, Granite, Phi 4, Nemotron, Command, InternLM: JSON in tags
	{Text: `(?s)^(?:<[^<>\s]{1,40}>\s*)+\[?\s*\{.*?"(?:name|tool_name|` +
		`function)"\s*:\s*"([^"]+)".*\}\s*\]?\s*(?:<[^<>\s]{1,40}>\s*)*$`},
	// Qwen 3 Coder, Seed, Llama 3
	{Text: `(?s)^(?:<[^<>\s]{1,40}>\s*)*?<function=([^>\s]+)>.*(?:</function>|\})\s*(?:<[^<>\s]{1,40}>\s*)*$`},
	// GLM, LongCat
	{Text: `(?s)^<\w*tool_call>\s*([\w.:-]+)\s*(?:<\w*arg_key>.*</\w*arg_value>)?\s*</\w*tool_call>\s*$`},
	// Hunyuan
	{Text: "(?s)^(?:<tool_calls>\\s*)?<tool_call>\\s*([\\w.:-]+)\\s*" +
		"```.*```\\s*</tool_call>\\s*(?:</tool_calls>)?\\s*$"},
	// LFM 2, Gemma 4
	{Text: `(?s)^<\|tool_call(?:_start\|)?>\s*\[?(?:call:)?([\w.-]+)[({].*[)}]\]?\s*<(?:\|tool_call_end\||tool_call\|` +
		`)>\s*$`},
	// Kimi
	{Text: `(?s)^(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*([\w.:-]+).*<\|` +
		`tool_call(?:s_section)?_end\|>\s*$`},
	// harmony: gpt-oss
	{Text: `(?s)^(?:<\|start\|>assistant\s*)?(?:<\|channel\|>\s*\w+\s+)?to=([\w.:-]+).*<\|message\|>.*\}\s*(?:<\|` +
		`(?:call|end)\|>)?\s*$`},
	// the same without its special tokens
	{Text: `(?s)^(?:assistant)?commentary\s+to=([\w.:-]+)\s*(?:code|json)?\s*\{.*\}\s*$`},
	// DeepSeek
	{Text: `(?s)^(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?` +
		`\s*([\w.:-]+).*<｜tool▁calls?▁end｜>\s*$`},
	// Mistral
	{Text: `(?s)^\[TOOL_CALLS\]\s*\[\s*\{.*?"name"\s*:\s*"([^"]+)".*\]\s*$`},
	// the same, of today
	{Text: `(?s)^\[TOOL_CALLS\]\s*([\w.:-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*\{.*\}\s*$`},
	// MiniMax, DeepSeek 3.2
	{Text: `(?s)^(?:<[\w:｜-]*(?:tool_calls?|function_calls)>\s*)?<(?:｜DSML｜)?invoke ` +
		`name="([^"]+)">.*</(?:｜DSML｜)?invoke>\s*(?:</[\w:｜-]+>)?\s*$`},
	// prompts
	{Text: `(?s)^<tool_use>\s*<name>([^<]+)</name>.*</tool_use>\s*$`},
}

// maxTextCalls is how many places of a message may begin such a call, and maxTextCall how long one may be, in bytes.
const maxTextCalls, maxTextCall = 4, 128 << 10

// textCallBegins begin such a call.
var textCallBegins = []string{
	"<tool", "<function", "<TOOLCALL>", "<|tool", "<|python_tag|>", "<|START_ACTION|>", "<|action_start|>",
	"<seed:tool_call>", "<longcat_tool_call>",
	"<minimax:tool_call>", "<invoke name=", "<｜DSML｜", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "[TOOL_CALLS]",
	"<|start|>assistant", "<|channel|>",
	"commentary to=",
}

// TextCall returns the name of the tool among those offered that a message calls in its text, "" for none. The message is
// nothing but the call and perhaps prose before it; one that shows a call in code, or says more after it, is an answer. The
// text is never run.
func TextCall(text string, tools []Tool) string {
	if end := strings.TrimSpace(text); end == "" || !strings.ContainsAny(end[len(end)-1:], ">}]") {
		return ""
	}
	for _, begin := range textCallBegins {
		rest, at := text, 0
		for range maxTextCalls {
			next := strings.Index(rest, begin)
			if next < 0 {
				break
			}
			at += next
			rest = text[at+len(begin):]
			if len(text)-at <= maxTextCall && !inCode(text[:at]) {
				for i := range textCalls {
					if m := textCalls[i].Get().FindStringSubmatch(text[at:]); m != nil {
						name, _ := jsontext.AppendUnquote(nil, `"`+m[1]+`"`) // what is no JSON stays as it is
						if offered := offeredAs(string(name), tools); offered != "" {
							return offered
						}
					}
				}
			}
			at += len(begin)
		}
	}
	return ""
}

// offeredAs returns the name of the offered tool that a model means with a name: a namespace may stand before it, and a
// number or tags behind it.
func offeredAs(name string, tools []Tool) string {
	offered := func(name string) bool {
		return name != "" && slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == name })
	}
	if offered(name) {
		return name
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(name), "functions."), ":") // Kimi counts the calls
	name, _, _ = strings.Cut(name, "<|")                                                     // of harmony
	if name == "container.exec" {
		name = "shell"
	}
	if offered(name) {
		return name
	}
	return ""
}
