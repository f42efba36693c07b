package mcptypes

// Text returns one text block for each string. Most results have such content.
func Text(s ...string) []ContentBlock {
	blocks := make([]ContentBlock, len(s))
	for i, text := range s {
		blocks[i] = &TextContent{Text: text}
	}
	return blocks
}
