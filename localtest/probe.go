package localtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// probe checks that an engine does what the lease protocol needs of DynamoDB: a
// failed condition returns the item as it was, and of many conditional updates
// at the same time exactly one wins. It works in a table of its own, which it
// deletes again.
func probe(ctx context.Context, c *dynamodb.Client) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p := prober{c, "pawl-probe-" + rand.Text()}
	if err := p.createTable(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, e := c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &p.table}); e != nil {
			err = errors.Join(err, fmt.Errorf("left behind table %s: %w", p.table, e))
		}
	}()
	if err := dynamodb.NewTableExistsWaiter(c, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second
	}).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &p.table}, time.Minute); err != nil {
		return err
	}
	if err := p.returnsTheOldItem(ctx); err != nil {
		return err
	}
	return p.letsOneWin(ctx)
}

// A prober plays for one item: whoever moves its turn on is its winner.
type prober struct {
	*dynamodb.Client
	table string
}

func (p prober) createTable(ctx context.Context) error {
	_, err := p.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &p.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	return err
}

// returnsTheOldItem plays turn 0 twice.
func (p prober) returnsTheOldItem(ctx context.Context) error {
	const first = "first"
	_, err := p.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &p.table,
		Item:      map[string]types.AttributeValue{"id": text("game"), "turn": number(1), "winner": text(first)},
	})
	if err != nil {
		return err
	}
	switch winner, err := p.play(ctx, 0, "second"); {
	case err != nil:
		return err
	case winner != first:
		return errors.New("an update was made although its condition was false")
	}
	return nil
}

// letsOneWin has many players play turn 1 at the same time.
func (p prober) letsOneWin(ctx context.Context) error {
	const players = 64
	var (
		winners [players]string
		errs    [players]error
		all     sync.WaitGroup
	)
	for i := range players {
		all.Go(func() { winners[i], errs[i] = p.play(ctx, 1, strconv.Itoa(i)) })
	}
	all.Wait()
	won := 0
	for i, winner := range winners {
		if errs[i] != nil {
			return errs[i]
		}
		if winner == strconv.Itoa(i) {
			won++
		}
	}
	if won != 1 {
		return fmt.Errorf("%d of %d conditional updates at the same time succeeded, not 1", won, players)
	}
	for _, winner := range winners {
		if winner != winners[0] {
			return fmt.Errorf("old items that came with a failed condition contradict each other: winner %s and winner %s",
				winners[0], winner)
		}
	}
	return nil
}

// play moves the item on from the turn given and returns who did: the player,
// or the one that the old item names if somebody else was first. That may be
// the player too, when the answer to its update was lost and the SDK asked again.
func (p prober) play(ctx context.Context, turn int, player string) (winner string, err error) {
	_, err = p.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &p.table,
		Key:                 map[string]types.AttributeValue{"id": text("game")},
		UpdateExpression:    aws.String("SET turn = :next, winner = :player"),
		ConditionExpression: aws.String("turn = :turn"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":turn": number(turn), ":next": number(turn + 1), ":player": text(player),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &failed) {
		old, ok := failed.Item["winner"].(*types.AttributeValueMemberS)
		if !ok {
			return "", errors.New("the old item does not come back with a failed condition " +
				"(ReturnValuesOnConditionCheckFailure)")
		}
		return old.Value, nil
	}
	return player, err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
