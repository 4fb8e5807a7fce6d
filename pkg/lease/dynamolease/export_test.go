package dynamolease

// Decode is for tests that compare an item with the record that it should be.
var Decode = decode
