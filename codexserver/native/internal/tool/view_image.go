package tool

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var imageDefinition = model.Tool{
	Name:        "view_image",
	Description: "Shows you an image file of this machine.",
	Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder"}
},"required":["path"],"additionalProperties":false}`),
}

// MaxImage is the size in bytes of the largest image that is sent to the model.
const MaxImage = 20 << 20

// ImageTypes are the images that models take. Of another one the provider would refuse each request from then on.
var ImageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (t *Turn) viewImage(ctx context.Context, call Call) (Result, error) {
	var args struct {
		Path string `json:"path"`
	}
	if err := decodeArguments(call.Arguments, &args); err != nil {
		return Result{Output: err.Error()}, nil
	}
	if args.Path == "" {
		return Result{Output: (&argumentError{"path", "missing"}).Error()}, nil
	}
	path, err := t.near(args.Path)
	if err != nil {
		return Result{Output: fmt.Sprintf("the image cannot be shown: %v", err)}, nil
	}
	image := "" // a data URL
	res, err := t.look(ctx, call, args.Path, words(call.Name, args.Path), nil, func(bound string) (string, error) {
		data, err := t.content(args.Path, bound, isImage)
		if err != nil {
			return "", fmt.Errorf("the image cannot be shown: %w", err)
		}
		image = "data:" + typeOf(data) + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
		return "attached local image path", nil
	})
	if err == nil && image != "" {
		t.Host.Emit(protocol.ViewImageToolCall{CallID: call.ID, Path: path})
		res.Items = []protocol.ResponseItem{protocol.MessageItem{
			Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: image}},
		}}
	}
	return res, err
}

// isImage fails unless the content is an image. Only the content counts: a command can give a link to any file the
// name of one.
func isImage(path, content string) error {
	switch {
	case !slices.Contains(ImageTypes, typeOf(content)):
		return &fault{what: path + " is not an image", next: "give the path of a PNG, JPEG, GIF or WebP file."}
	case len(content) > MaxImage:
		return &fault{what: fmt.Sprintf("%s has more than %d bytes", path, MaxImage)}
	}
	return nil
}

// typeOf returns the media type of a content by its first bytes.
func typeOf(content string) string {
	return http.DetectContentType([]byte(content[:min(len(content), 512)]))
}
