package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const metaTime = "2025-09-20T10:00:00.000Z"

func conversationID(n int) string { return fmt.Sprintf("019a0000-0000-7000-8000-%012d", n) }

// keepRollout writes the rollout of conversation n, which began on the given day at second n,
// and returns its path. Each line is a type and a payload.
func keepRollout(t testing.TB, home, day string, n int, lines ...string) string {
	t.Helper()
	dir := filepath.Join(home, "sessions", filepath.FromSlash(strings.ReplaceAll(day, "-", "/")))
	var text strings.Builder
	for _, line := range lines {
		if kind, payload, ok := strings.Cut(line, " "); ok && payload != "" {
			fmt.Fprintf(&text, "{\"timestamp\":%q,\"type\":%q,\"payload\":%s}\n", metaTime, kind, payload)
		} else {
			text.WriteString(line + "\n")
		}
	}
	path := filepath.Join(dir, fmt.Sprintf("rollout-%sT10-00-%02d-%s.jsonl", day, n%60, conversationID(n)))
	write(t, path, text.String())
	return path
}

func metaLine(n int) string {
	return fmt.Sprintf(`session_meta {"id":%q,"timestamp":%q,"cwd":"/tmp","originator":"codex_cli_rs","cli_version":"0.42.0","instructions":null}`, conversationID(n), metaTime)
}

func itemLine(text string) string {
	return fmt.Sprintf(`response_item {"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, text)
}

func saidLine(text string) string {
	return fmt.Sprintf(`event_msg {"type":"user_message","message":%q,"kind":"plain"}`, text)
}

// TestListPreviews checks which conversations are in the list, and their previews. They are
// those of Codex 0.42, which leaves out the last ones.
func TestListPreviews(t *testing.T) {
	e, home := inHome(t, native.Options{}, nil)
	const context, rules = "<environment_context>\n  <cwd>/tmp</cwd>\n</environment_context>", "<user_instructions>\n\nBe nice.\n\n</user_instructions>"
	day := "2025-09-20"
	type row struct{ ID, Preview string }
	var want []row
	add := func(preview string, lines ...string) {
		n := 30 - len(want)
		keepRollout(t, home, day, n, append([]string{metaLine(n)}, lines...)...)
		want = append(want, row{conversationID(n), preview})
	}
	add("plain", itemLine(context), itemLine("plain"), saidLine("plain"))
	add("after the rules", itemLine(rules), itemLine(context), itemLine("after the rules"), saidLine("after the rules"))
	add("<user_instructions> is a tag", itemLine("<user_instructions> is a tag"), saidLine("x"))
	add("the request", itemLine("# Files open in the editor\n\n## My request for Codex:\nthe request\n"), saidLine("x"))
	add("  blanks  ", itemLine("  blanks  "), saidLine("  blanks  "))
	add("", itemLine(""), saidLine(""))
	add("of the user", `response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}`, itemLine("of the user"), saidLine("of the user"))
	add("beside an image", `response_item {"type":"message","role":"user","content":[{"type":"input_image","image_url":"x"},{"type":"input_text","text":"beside an image"},{"type":"input_text","text":"more"}]}`, saidLine("x"))
	add("after what cannot be read", "garbage", "", itemLine("after what cannot be read"), saidLine("x"))
	add("said, no item", saidLine("said, no item"))
	add("an item alone", itemLine("an item alone"))

	// These are not in the list.
	keepRollout(t, home, day, 1, metaLine(1))
	keepRollout(t, home, day, 2, metaLine(2), itemLine(context), `event_msg {"type":"user_message","message":"x","kind":"environment_context"}`)
	keepRollout(t, home, day, 3, saidLine("no meta"))
	keepRollout(t, home, day, 4)
	path := keepRollout(t, home, day, 5, metaLine(5), saidLine("another name"))
	must.OK(t, os.Rename(path, strings.TrimSuffix(path, "l")))

	r := must.Get(e.List(t.Context(), protocol.ListConversationsParams{}))(t)
	var got []row
	for _, item := range r.Items {
		got = append(got, row{item.ConversationID, item.Preview})
		if item.Timestamp == nil || *item.Timestamp != metaTime || !filepath.IsAbs(item.Path) || item.Cwd != "/tmp" {
			t.Errorf("%+v", item)
		}
	}
	must.Equal(t, "rows", want, got)
}

func TestListPages(t *testing.T) {
	e, home := inHome(t, native.Options{}, nil)
	list := func(size int, cursor string) (previews []string, next string) {
		t.Helper()
		p := protocol.ListConversationsParams{Cursor: cursor}
		if size >= 0 {
			p.PageSize = &size
		}
		r := must.Get(e.List(t.Context(), p))(t)
		if r.Items == nil {
			t.Error("items are null")
		}
		for _, item := range r.Items {
			previews = append(previews, item.Preview)
		}
		if r.NextCursor != nil {
			next = *r.NextCursor
		}
		return previews, next
	}
	if got, next := list(25, ""); len(got) > 0 || next != "" {
		t.Errorf("without sessions: %v, %q", got, next)
	}
	var all []string
	for _, day := range []string{"2025-09-20", "2025-09-19", "2024-12-31"} {
		for n := 9; n >= 0; n-- {
			name := fmt.Sprintf("%s %d", day, n)
			keepRollout(t, home, day, n, metaLine(n), saidLine(name))
			all = append(all, name)
		}
	}
	keepRollout(t, home, "2025-09-20", 60, metaLine(60), saidLine("2025-09-20 60")) // in the same second as 0
	all = append(all[:9:9], append([]string{"2025-09-20 60"}, all[9:]...)...)

	first, next := list(-1, "")
	must.Equal(t, "default page", all[:25], first)
	must.Equal(t, "cursor", "2024-12-31T10-00-06|"+conversationID(6), next)
	for _, size := range []int{1, 3, 30, 1_000_000} {
		var got []string
		cursor := ""
		for {
			page, next := list(size, cursor)
			if next == "" {
				break
			}
			got, cursor = append(got, page...), next
		}
		must.Equal(t, fmt.Sprint("pages of ", size), all, got)
	}
	for _, cursor := range []string{"bogus", "|", "2025-09-20T10-00-05", "2025-09-20T10:00:05Z|" + conversationID(5), "2025-09-20T10-00-05|x",
		"2025-02-30T10-00-05|" + conversationID(5)} {
		if _, err := e.List(t.Context(), protocol.ListConversationsParams{Cursor: cursor}); !errors.Is(err, engine.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
	for cursor, want := range map[string]int{
		"2025-09-20T10-00-05|" + conversationID(5): 26,
		"2030-01-01T00-00-00|" + conversationID(0): 31, "2000-01-01T00-00-00|" + conversationID(0): 0,
	} {
		got, _ := list(100, cursor)
		must.Equal(t, "items after "+cursor, want, len(got))
	}
	if got, next := list(0, ""); len(got) > 0 || next != "" {
		t.Errorf("a page of 0: %v, %q", got, next)
	}
	less := -1
	if _, err := e.List(t.Context(), protocol.ListConversationsParams{PageSize: &less}); !as[*engine.RefusedError](err) {
		t.Errorf("a page of -1: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.List(ctx, protocol.ListConversationsParams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
