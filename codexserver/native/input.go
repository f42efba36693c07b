package native

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxShownURL bounds the URL of an image in an event, in bytes: a data URL holds the
// whole image.
const maxShownURL = 64 << 10

// readInput turns the user's items into a message for the model and an event for the
// rollout.
func readInput(
	cwd string, set *permission.Set, items []protocol.InputItem,
) (protocol.MessageItem, protocol.UserMessage, error) {
	message := protocol.MessageItem{Role: "user"}
	event := protocol.UserMessage{Kind: protocol.UserPlain}
	var texts []string
	for i, item := range items {
		switch item.Type {
		case protocol.InputText:
			text := strings.ToValidUTF8(item.Text, "\uFFFD")
			texts = append(texts, text)
			message.Content = append(message.Content, protocol.ContentItem{Type: "input_text", Text: text})
		case protocol.InputImage:
			if len(item.ImageURL) <= maxShownURL { // the message has it in any case
				event.Images = append(event.Images, item.ImageURL)
			}
			message.Content = append(message.Content,
				protocol.ContentItem{Type: "input_image", ImageURL: item.ImageURL})
		case protocol.InputLocalImage:
			url, err := imageURL(cwd, set, item.Path)
			if err != nil {
				return message, event, fmt.Errorf("items[%d]: %w", i, err)
			}
			message.Content = append(message.Content, protocol.ContentItem{Type: "input_image", ImageURL: url})
		default:
			return message, event, fmt.Errorf("items[%d]: unknown type %q", i, item.Type)
		}
	}
	event.Message = strings.Join(texts, "")
	return message, event, nil
}

// imageURL reads an image file as a data URL. If the content does not show its type, the name says it.
func imageURL(cwd string, set *permission.Set, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	if err := paths.Near(path, cwd); err != nil {
		return "", err
	}
	f, err := safefile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := set.CheckFile(f); err != nil {
		return "", err
	}
	data, err := f.ReadAll(tool.MaxImage)
	if err != nil {
		return "", err
	}
	kind := http.DetectContentType(data)
	if !strings.HasPrefix(kind, "image/") {
		kind = "image/" + strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}
