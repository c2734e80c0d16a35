package stentor.lab.axis2;

import java.util.Iterator;
import org.apache.axiom.om.OMAbstractFactory;
import org.apache.axiom.om.OMElement;
import org.apache.axiom.om.OMFactory;
import org.apache.axiom.om.OMNamespace;
import stentor.lab.Builder;
import stentor.lab.Content;
import stentor.lab.Events;

/** Content as a tree of Axiom, built and walked by hand, as in nunes-2014. */
final class Tree implements Events {
    private static final OMFactory FACTORY = OMAbstractFactory.getOMFactory();
    private final OMNamespace namespace;
    private OMElement current;

    private Tree(OMNamespace namespace, OMElement outside) {
        this.namespace = namespace;
        this.current = outside;
    }

    /** Makes a tree without a namespace. */
    static OMElement of(Content content) throws Exception {
        Tree tree = new Tree(null, null);
        content.tell(tree);
        return tree.current;
    }

    /** Makes a tree in a namespace, inside an element with a name. */
    static OMElement wrapped(String namespace, String name, Content content) throws Exception {
        OMNamespace of = FACTORY.createOMNamespace(namespace, "");
        OMElement wrapper = FACTORY.createOMElement(name, of);
        content.tell(new Tree(of, wrapper));
        return wrapper;
    }

    @Override
    public void start(String name) {
        OMElement element = FACTORY.createOMElement(name, namespace);
        if (current != null) {
            current.addChild(element);
        }
        current = element;
    }

    @Override
    public void text(String text) {
        current.setText(text);
    }

    @Override
    public void end() {
        if (current.getParent() instanceof OMElement) {
            current = (OMElement) current.getParent();
        }
    }

    /** Reads content; parsing happens on the way, as Axiom defers it. */
    static Content read(OMElement root) {
        Builder builder = new Builder();
        walk(root, builder);
        return builder.content();
    }

    private static void walk(OMElement element, Builder builder) {
        builder.start(element.getLocalName());
        Iterator<?> children = element.getChildElements();
        if (children.hasNext()) {
            while (children.hasNext()) {
                walk((OMElement) children.next(), builder);
            }
        } else {
            builder.text(element.getText());
        }
        builder.end();
    }
}
