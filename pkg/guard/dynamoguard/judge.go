package dynamoguard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A verdict is what an item that did not meet the condition tells.
type verdict int

const (
	own     verdict = iota // nothing: the condition that failed was the caller's
	applied                // our write is there: an earlier attempt made it
	narrow                 // it is bound to fewer locks than are declared
	changed                // others' tokens are not those that were assumed
)

// judge explains a failed condition by the item that did not meet it, or returns a
// refusal. Assumed are the tokens that a put was to keep; nil is for an update.
func (c claim) judge(item Item, assumed map[string]fence.Token,
	resource string) (verdict, map[string]fence.Token, error) {
	if id, ok := item[c.a.write()].(*types.AttributeValueMemberS); ok && id.Value == c.id {
		return applied, nil, nil
	}
	seen, err := c.a.Seen(item)
	if err != nil {
		return own, nil, fmt.Errorf("%s: %w", resource, err)
	}
	if err := c.h.Admit(c.declared, seen, resource); err != nil {
		return own, seen, err
	}
	switch {
	case len(seen) > 0 && len(seen) < len(c.declared):
		return narrow, seen, nil
	case assumed != nil && !c.keeps(assumed, seen):
		return changed, seen, nil
	}
	return own, seen, nil
}

// keeps reports whether a put that assumes some tokens forgets none of the others'.
func (c claim) keeps(assumed, seen map[string]fence.Token) bool {
	return !slices.ContainsFunc(c.declared, func(lock string) bool {
		return c.held(lock) == 0 && assumed[lock] != seen[lock]
	})
}

// widen binds an item that was read to the declared locks too. Its tokens stay, in
// attributes of the names that several locks have.
func (g *Guard) widen(ctx context.Context, c claim, table *string, item Item, seen map[string]fence.Token) error {
	names, err := g.keys(ctx, table)
	if err != nil {
		return err
	}
	key := make(Item)
	for _, name := range names {
		key[name] = item[name]
	}
	bound := slices.Sorted(maps.Keys(seen))
	in := &dynamodb.UpdateItemInput{
		TableName:           table,
		Key:                 key,
		ConditionExpression: aws.String("#lock = :bound AND #write = :before"),
		UpdateExpression:    aws.String("SET #lock = :declared, #write = :write"),
		ExpressionAttributeNames: map[string]string{
			"#lock": c.a.lock(), "#write": c.a.write(),
		},
		ExpressionAttributeValues: Item{
			":bound": binding(bound), ":declared": binding(c.declared),
			":before": item[c.a.write()], ":write": text(c.id + "-widened"),
		},
	}
	for i, lock := range c.declared {
		name, value := fmt.Sprintf("#fence%d", i), fmt.Sprintf(":token%d", i)
		in.ExpressionAttributeNames[name], in.ExpressionAttributeValues[value] = c.attribute(lock), number(seen[lock])
		*in.UpdateExpression += fmt.Sprintf(", %s = %s", name, value)
	}
	if len(bound) == 1 {
		in.ExpressionAttributeNames["#single"] = c.a.fence()
		*in.UpdateExpression += " REMOVE #single"
	}
	_, err = g.Client.UpdateItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return nil // somebody was faster: the caller's own request tells
	}
	return err
}

// keys are the names of the attributes that are the key of a table.
func (g *Guard) keys(ctx context.Context, table *string) (names []string, err error) {
	if g.Client == nil {
		return nil, errNoClient
	}
	out, err := g.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
	if err != nil {
		return nil, err
	}
	for _, k := range out.Table.KeySchema {
		names = append(names, aws.ToString(k.AttributeName))
	}
	return names, nil
}

var errNoClient = errors.New("dynamoguard: Guard.Client is missing")
